//! What a product computes, checked: its sizes, its output, its problem and where operands lie.

use super::Gemm;
use crate::context::Context;
use crate::quantized::QuantizedTensor;
use crate::right::RightOperand;
use crate::storage::{Bound, Buffers, Bundle};
use crate::tensor::Tensor;
use tilewise_core::kernel::Role;
use tilewise_core::{
    Axis, Bias, DType, Epilogue, Error, Format, Grouping, Operand, Problem, Result,
};

impl Gemm {
    /// Memory for A with its columns in W's order, if W has one ([`QuantizedTensor::with_order`]).
    pub(super) fn in_order(&self) -> Result<Option<InOrder>> {
        let RightOperand::Quantized(w) = &self.b else { return Ok(None) };
        let Some(order) = w.order.as_deref() else { return Ok(None) };
        let a = Tensor::zeros(self.context(), self.a.dtype(), self.a.shape())?;
        Ok(Some(InOrder {
            a,
            w: QuantizedTensor { order: None, ..w.clone() },
            columns: order.columns.clone(),
        }))
    }

    /// Shape of the right operand as B: entries, K, N.
    fn b_matrix(&self) -> Result<[usize; 3]> {
        match &self.b {
            RightOperand::Dense(b) => b.matrix("B"),
            RightOperand::Quantized(w) => w.matrix(),
        }
    }

    /// Batch, M, N, K.
    fn sizes(&self) -> Result<[usize; 4]> {
        let ([a_batch, m, k], [b_batch, b_k, n]) = (self.a.matrix("A")?, self.b_matrix()?);
        if k != b_k {
            return Err(Error::Shape(format!("A is {m}×{k} and B is {b_k}×{n}: K differs")));
        }
        let batch = match &self.offsets {
            Some(offsets) if a_batch != 1 => {
                let groups = offsets.groups;
                return Err(Error::Shape(format!(
                    "a grouped product ({groups} groups) takes A [M,K], not a batch of {a_batch}"
                )));
            }
            Some(offsets) if b_batch as u64 != offsets.groups => {
                return Err(Error::Shape(format!(
                    "{} group offsets for {b_batch} entries of B",
                    offsets.groups
                )));
            }
            Some(_) => 1,
            None if a_batch == b_batch || b_batch == 1 => a_batch,
            None if a_batch == 1 => b_batch,
            None => {
                return Err(Error::Shape(format!(
                    "A has a batch of {a_batch}, B one of {b_batch}"
                )));
            }
        };
        if let Some(&last) = self
            .offsets
            .as_ref()
            .and_then(|offsets| offsets.ends.as_deref())
            .and_then(<[u32]>::last)
            && last as usize > m
        {
            return Err(Error::GroupOffsets(format!("the last one is {last}, A has {m} rows")));
        }
        Ok([batch, m, n, k])
    }

    /// Type and shape of the output that `run` allocates.
    fn output_kind(&self) -> Result<(DType, Vec<usize>)> {
        let [batch, m, n, _] = self.sizes()?;
        let stacked = match &self.b {
            RightOperand::Dense(b) => b.shape().len() == 3,
            RightOperand::Quantized(w) => w.stacked,
        };
        let batched = self.offsets.is_none() && (self.a.shape().len() == 3 || stacked);
        let shape = if batched { vec![batch, m, n] } else { vec![m, n] };
        let shared = match &self.b {
            RightOperand::Dense(b) if b.dtype() != self.a.dtype() => DType::F32,
            _ => self.a.dtype(),
        };
        Ok((self.out_dtype.or(self.c.as_ref().map(Tensor::dtype)).unwrap_or(shared), shape))
    }

    /// The output that `run` allocates.
    pub(crate) fn output(&self) -> Result<Tensor> {
        let (dtype, shape) = self.output_kind()?;
        let Some(c) = &self.c else {
            if self.beta != 0.0 {
                let beta = self.beta;
                return Err(Error::InvalidValue(format!(
                    "beta is {beta} and there is no C: give one with c() or use run_into()"
                )));
            }
            return Tensor::zeros(self.context(), dtype, &shape);
        };
        self.context().same(c.context(), "C")?;
        if c.shape() != shape || c.dtype() != dtype || !c.is_contiguous() {
            let (kind, got, strides) = (c.dtype(), c.shape(), c.strides());
            return Err(Error::Shape(format!(
                "C to start from must be contiguous {dtype} {shape:?}; it is {kind} {got:?}, \
                 strides {strides:?}"
            )));
        }
        c.copy()
    }

    /// The problem and its operands' storage, for the output `c`, or for a packed one that is not
    /// there yet.
    pub(crate) fn bundle<'s>(&'s self, c: Option<&'s Tensor>) -> Result<Bundle<'s>> {
        let context = self.context();
        let [batch, m, n, k] = self.sizes()?;
        let entries = self.offsets.as_ref().map_or(batch as u64, |offsets| offsets.groups);
        let mut buffers = Buffers::default();
        let mut add = |role: Role, name: &'static str, owner: &Context, bound: Bound<'s>| {
            context.same(owner, name)?;
            if c.is_some_and(|c| bound.storage.shares(c.storage())) {
                return Err(Error::Aliased { operand: name });
            }
            buffers[role as usize] = Some(bound);
            Ok(())
        };
        let (a, bound) = self.a.operand("A", batch as u64)?;
        add(Role::A, "A", context, bound)?;
        let b = match &self.b {
            RightOperand::Dense(b) => {
                let (operand, bound) = b.operand("B", entries)?;
                add(Role::B, "B", b.context(), bound)?;
                operand
            }
            RightOperand::Quantized(w) => {
                let (operand, planes) = w.operand();
                for (role, bound) in planes {
                    add(role, "B", &w.context, bound)?;
                }
                operand
            }
        };
        let bias = match &self.bias {
            Some((bias, axis)) => {
                let (operand, bound) =
                    bias.vector("bias", entries, if *axis == Axis::N { n } else { m } as u64)?;
                add(Role::Bias, "bias", bias.context(), bound)?;
                Some(Bias { axis: *axis, operand })
            }
            None => None,
        };
        let residual = match &self.residual {
            Some(residual) => {
                let [_, rows, cols] = residual.matrix("residual")?;
                same_shape("residual", [rows, cols], [m, n])?;
                let (operand, bound) = residual.operand("residual", batch as u64)?;
                add(Role::Residual, "residual", residual.context(), bound)?;
                Some(along_rows("residual", operand, m, n)?)
            }
            None => None,
        };
        if let Some(offsets) = &self.offsets {
            add(Role::Offsets, "group offsets", &offsets.context, Bound::whole(&offsets.storage))?;
        }
        let c = match c {
            Some(c) => {
                context.same(c.context(), "C")?;
                let [c_batch, rows, cols] = c.matrix("C")?;
                same_shape("C", [rows, cols], [m, n])?;
                if c_batch != batch {
                    return Err(Error::Shape(format!(
                        "C has a batch of {c_batch}, the product one of {batch}"
                    )));
                }
                let (operand, bound) = c.operand("C", batch as u64)?;
                buffers[Role::C as usize] = Some(bound);
                along_rows("C", operand, m, n)?
            }
            None => packed(self.output_kind()?.0, [batch, m, n])?,
        };
        let b_copy = match &self.b {
            RightOperand::Dense(b) => &b.copy,
            RightOperand::Quantized(w) => &w.copy,
        };
        let copies = [(Role::A, &self.a.copy), (Role::B, b_copy)].map(|(role, copy)| {
            let copy = copy.as_deref().filter(|copy| copy.role == role)?;
            let (storage, copied) = copy.packed.as_ref()?;
            buffers[role.copy() as usize] = Some(Bound::whole(storage));
            Some(*copied)
        });
        let factor = if let RightOperand::Quantized(w) = &self.b { w.factor } else { 1.0 };
        let problem = Problem {
            m: m as u64,
            n: n as u64,
            k: k as u64,
            batch: batch as u64,
            a,
            b,
            c,
            grouping: match &self.offsets {
                Some(offsets) => Grouping::RaggedM { groups: offsets.groups },
                None => Grouping::Batched,
            },
            epilogue: Epilogue {
                alpha: self.alpha * factor,
                beta: self.beta,
                bias,
                activation: self.activation,
                residual,
            },
            precision: self.precision,
            copies,
        };
        Ok(Bundle { problem, buffers })
    }
}

/// A product whose weights have an order of columns: memory for A with its columns in that order,
/// and the weights without it.
pub(super) struct InOrder {
    pub(super) a: Tensor,
    pub(super) w: QuantizedTensor,
    pub(super) columns: Tensor,
}

/// An output that is still to be allocated.
fn packed(dtype: DType, [batch, m, n]: [usize; 3]) -> Result<Operand> {
    let elements = (batch as u64).checked_mul(m as u64).and_then(|rows| rows.checked_mul(n as u64));
    match elements {
        Some(_) => Ok(Operand::packed(Format::Dense(dtype), batch as u64, m as u64, n as u64)),
        None => Err(Error::Overflow(format!("an output of {batch}×{m}×{n} elements"))),
    }
}

fn same_shape(name: &str, got: [usize; 2], wanted: [usize; 2]) -> Result<()> {
    if got == wanted {
        Ok(())
    } else {
        Err(Error::Shape(format!("{name} is {got:?}, the product {wanted:?}")))
    }
}

/// C and the residual are walked along their rows. A single column that was taken for a row is
/// turned back.
fn along_rows(name: &str, mut operand: Operand, m: usize, n: usize) -> Result<Operand> {
    if operand.transposed {
        match (m, n) {
            (_, 0..=1) => operand.ld = 1,
            (0..=1, _) if operand.ld == 1 => operand.ld = 0,
            _ => {
                return Err(Error::Strides(format!(
                    "{name} must run along its rows: give the transposed product instead, Cᵀ = \
                     Bᵀ·Aᵀ"
                )));
            }
        }
        operand.transposed = false;
    }
    Ok(operand)
}
