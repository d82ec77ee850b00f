//! A checked product: its sizes, its output, its problem, and the places of its operands.

use super::Gemm;
use super::batch::Batch;
use super::groups::Groups;
use crate::gemm::ends::GroupEnds;
use crate::right::RightOperand;
use crate::tensor::operands::Operands;
use crate::tensor::storage::{Bound, Bundle};
use crate::tensor::{Tensor, count};
use std::borrow::Cow;
use tilewise_core::kernel::Role;
use tilewise_core::problem::Copied;
use tilewise_core::{
    Axis, Bias, DType, Epilogue, Error, Format, Gathered, Grouping, Operand, Problem, Result,
};

impl Gemm {
    /// The batch of the right operand, and its K and N as B.
    fn right(&self) -> Result<([usize; 2], [usize; 2])> {
        match &self.b {
            RightOperand::Dense(b) => {
                let [_, name] = self.names();
                Ok((b.batch(2).map(|(size, _)| size), b.rows_and_columns(name)?))
            }
            RightOperand::Quantized(w) => {
                let [entries, k, n] = w.matrix()?;
                Ok(([1, entries], [k, n]))
            }
            RightOperand::Shards(shards) => {
                let [groups, k, n] = shards.shape_of_b();
                Ok(([1, groups], [k, n]))
            }
        }
    }

    /// Whether the product is computed as its transpose. A and B are exchanged then, and so are the
    /// rows and columns of all operands.
    pub(super) fn is_turned(&self) -> bool {
        matches!(self.groups, Some(Groups::Rows { along: Axis::N, .. }))
    }

    /// The left and the right operand in errors.
    fn names(&self) -> [&'static str; 2] {
        if self.is_turned() { ["B", "A"] } else { ["A", "B"] }
    }

    /// Batch, and M, N, K.
    pub(super) fn sizes(&self) -> Result<(Batch, [usize; 3])> {
        self.function()?;
        let [name, _] = self.names();
        let [rows, k] = self.a.rows_and_columns(name)?;
        let m = self.count_of_rows(rows)?;
        let (b_batch, [b_k, n]) = self.right()?;
        if k != b_k {
            let ([a, b], hint) = match (self.is_turned(), k == n, m == b_k) {
                (true, ..) => ([[n, b_k], [k, m]], ""),
                (_, true, _) => ([[m, k], [b_k, n]], "; B transposed would fit"),
                // In a grouped product, the rows of A are not M of each product.
                (_, _, true) if self.groups.is_none() => {
                    ([[m, k], [b_k, n]], "; A transposed would fit")
                }
                _ => ([[m, k], [b_k, n]], ""),
            };
            return Err(Error::Shape(format!(
                "A is {}×{} and B is {}×{}: K differs{hint}",
                a[0], a[1], b[0], b[1]
            )));
        }
        if !n.is_multiple_of(self.columns()) {
            return Err(Error::Shape(format!("a gate and a column make a pair: N = {n} is odd")));
        }
        let batch = match &self.groups {
            None => Batch::of(&self.a, b_batch)?,
            Some(groups) => groups.batch(&self.a, b_batch, [m, k])?,
        };
        Ok((batch, [m, n, k]))
    }

    /// Type of the output that `run` allocates.
    pub(super) fn output_dtype(&self) -> DType {
        let own = self.a.dtype();
        let shared = if self.b.dtype().is_none_or(|b| b == own) { own } else { DType::F32 };
        self.out_dtype.or(self.c.as_ref().map(Tensor::dtype)).unwrap_or(shared)
    }

    /// Type and shape of the output that `run` allocates, before vectors lose an axis.
    fn output_kind(&self) -> Result<(DType, Vec<usize>)> {
        let dtype = self.output_dtype();
        if let Some(Groups::Listed(list)) = &self.groups {
            return Ok((dtype, vec![list.c_elements()?]));
        }
        let (batch, [m, n, _]) = self.sizes()?;
        let n = n / self.columns();
        let rank = match &self.b {
            RightOperand::Dense(b) => b.shape().len(),
            RightOperand::Quantized(w) => 2 + usize::from(w.stacked),
            RightOperand::Shards(_) => 3,
        };
        let rank = match &self.groups {
            Some(Groups::Rows { .. } | Groups::Indexed(_)) => 2,
            Some(Groups::AlongK(_)) => 3,
            _ => rank.max(self.a.shape().len()),
        };
        let [outer, inner] = batch.sizes();
        let shape = [outer, inner, m, n][4 - rank..].to_vec();
        Ok((dtype, shape))
    }

    /// A tensor of the output's shape, with an axis for the row of a vector A, or for the column of
    /// a vector B. If the product is computed as its transpose, it is transposed first.
    pub(super) fn as_matrix<'c>(&self, tensor: &'c Tensor) -> Cow<'c, Tensor> {
        let mut tensor = match self.is_turned() {
            true => Cow::Owned(tensor.t()),
            false => Cow::Borrowed(tensor),
        };
        let [no_rows, no_columns] = self.vectors;
        if no_columns {
            tensor = Cow::Owned(tensor.with_axis(tensor.shape().len()));
        }
        if no_rows && let Some(axis) = tensor.shape().len().checked_sub(1) {
            tensor = Cow::Owned(tensor.with_axis(axis));
        }
        tensor
    }

    /// Shape of the output: \[M,N\] with the batch before it, without the axis of a vector.
    ///
    /// ```
    /// use tilewise::{Context, DType, Gemm, Tensor};
    ///
    /// # fn main() -> tilewise::Result<()> {
    /// let ctx = Context::new()?;
    /// let zeros = |shape: &[usize]| Tensor::zeros(&ctx, DType::F32, shape);
    /// assert_eq!(Gemm::new(&zeros(&[8, 5, 3])?, zeros(&[3, 4])?).output_shape()?, [8, 5, 4]);
    /// assert_eq!(Gemm::new(&zeros(&[3])?, zeros(&[3, 4])?).output_shape()?, [4]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Shape`](crate::Error) for operands that do not fit together.
    pub fn output_shape(&self) -> Result<Vec<usize>> {
        let mut shape = self.stored_shape()?;
        if let (true, rank @ 2..) = (self.is_turned(), shape.len()) {
            shape.swap(rank - 2, rank - 1);
        }
        Ok(shape)
    }

    /// The shape of the computed output, which may be the transpose.
    fn stored_shape(&self) -> Result<Vec<usize>> {
        let (_, mut shape) = self.output_kind()?;
        let [no_rows, no_columns] = self.vectors;
        let rank = shape.len();
        shape.truncate(rank - usize::from(no_columns));
        if no_rows {
            shape.remove(rank - 2);
        }
        Ok(shape)
    }

    /// The output that `run` allocates.
    pub(crate) fn output(&self) -> Result<Tensor> {
        let stored = self.stored_output()?;
        Ok(if self.is_turned() { stored.t() } else { stored })
    }

    /// The computed output, which may be the transpose.
    fn stored_output(&self) -> Result<Tensor> {
        let ((dtype, _), shape) = (self.output_kind()?, self.stored_shape()?);
        let turned = self.is_turned();
        let Some(c) = self.c.as_ref().map(|c| if turned { c.t() } else { c.clone() }) else {
            let beta = self.factors[1].planned();
            if beta != 0.0 {
                return Err(Error::Misuse(format!(
                    "beta is {beta} and there is no C: give one by add_to(), or use run_into()"
                )));
            }
            return Tensor::zeros(self.context(), dtype, &shape);
        };
        self.context().same(c.context(), "C")?;
        if c.shape() != shape || c.dtype() != dtype || !c.is_contiguous() {
            let (kind, got, strides) = (c.dtype(), c.shape(), c.strides());
            let which = if turned { "the transpose of C" } else { "C" };
            return Err(Error::Shape(format!(
                "{which} to start from must be contiguous {dtype} {shape:?}; it is {kind} {got:?}, \
                 strides {strides:?}"
            )));
        }
        c.copy()
    }

    /// The problem and its operands' storage, for the output `c`, or for a packed output that is
    /// still to be allocated.
    pub(crate) fn bundle<'s>(&'s self, c: Option<&'s Tensor>) -> Result<Bundle<'s>> {
        if let Some(Groups::Listed(list)) = &self.groups {
            return self.bundle_of_list(list, c);
        }
        let (batch, [m, n, k]) = self.sizes()?;
        let (nested, entries) = batch.grouping()?;
        let groups = self.groups_of_rows()?;
        let mut operands = Operands::new(self.context(), c);
        let a = self.add_a(&batch, &mut operands)?;
        let gathered = self.add_rows(&mut operands)?;
        let b = self.add_b(&batch, groups.is_some(), &mut operands)?;
        let bias = self.add_bias(&batch, [m, n], &mut operands)?;
        let residual = self.add_residual(&batch, [m, n], &mut operands)?;
        let grouping = self.add_groups(groups.unwrap_or((entries, 0)), &mut operands)?;
        let of_c = [m, n / self.columns()];
        let c = match c {
            Some(c) => self.add_c(c, &batch, of_c, &mut operands)?,
            None => packed(self.output_kind()?.0, &batch, of_c)?,
        };
        let copies = self.add_copies(&mut operands);
        self.check_factors()?;
        let problem = Problem {
            m: m as u64,
            n: n as u64,
            k: k as u64,
            batch: entries,
            a,
            gathered,
            b,
            c,
            grouping: nested,
            epilogue: Epilogue {
                alpha: self.factors[0].planned() * self.own_factor(),
                beta: self.factors[1].planned(),
                bias,
                activation: self.function()?,
                residual,
                gated: self.gate.is_some(),
            },
            precision: self.precision,
            copies,
            beside_c: operands.beside_out,
        };
        // Entries of B for groups of rows are no batch.
        let mut problem = if groups.is_some() { problem } else { problem.collapsed() };
        problem.grouping = grouping.unwrap_or(problem.grouping);
        Ok(Bundle { problem, buffers: operands.buffers })
    }

    fn add_a<'s>(&'s self, batch: &Batch, operands: &mut Operands<'s>) -> Result<Operand> {
        let [name, _] = self.names();
        let (operand, bound) = self.a.operand(name, batch.shared(name, self.a.batch(2))?)?;
        operands.add(Role::A, name, &self.a, bound)?;
        Ok(operand)
    }

    /// Adds the indices of the rows of A.
    fn add_rows<'s>(&'s self, operands: &mut Operands<'s>) -> Result<Option<Gathered>> {
        let Some(indices) = &self.rows else { return Ok(None) };
        let (Operand { offset, ld, len, .. }, bound) = indices.vector([0; 4]);
        operands.add(Role::RowIndex, "row indices", indices, bound)?;
        let [rows, _] = self.a.rows_and_columns(self.names()[0])?;
        Ok(Some(Gathered { rows: rows as u64, offset, step: ld, len }))
    }

    /// Adds B, whose entries are those of groups of rows, or of the batch.
    fn add_b<'s>(
        &'s self,
        batch: &Batch,
        grouped: bool,
        operands: &mut Operands<'s>,
    ) -> Result<Operand> {
        let [_, name] = self.names();
        match &self.b {
            RightOperand::Dense(b) => {
                let own = b.batch(2);
                let strides = match grouped {
                    true => [0, 0, 0, own[1].1 as u64],
                    false => batch.shared(name, own)?,
                };
                let (operand, bound) = b.operand(name, strides)?;
                operands.add(Role::B, name, b, bound)?;
                Ok(operand)
            }
            RightOperand::Quantized(w) => {
                let (operand, planes) = w.operand();
                for (role, bound) in planes {
                    operands.add_buffer(role, name, &w.context, bound)?;
                }
                if grouped {
                    return Ok(operand);
                }
                let own = [(1, 0), (w.entries as usize, operand.batch_stride as usize)];
                Ok(operand.with_entry_strides(batch.shared(name, own)?))
            }
            RightOperand::Shards(shards) => Err(shards.refused(name)),
        }
    }

    fn add_bias<'s>(
        &'s self,
        batch: &Batch,
        [m, n]: [usize; 2],
        operands: &mut Operands<'s>,
    ) -> Result<Option<Bias>> {
        let Some((bias, axis)) = &self.bias else { return Ok(None) };
        let length = if *axis == Axis::N { n } else { m };
        let (operand, bound) = bias.vector(self.bias_strides(bias, batch, length)?);
        operands.add(Role::Bias, "bias", bias, bound)?;
        Ok(Some(Bias { axis: *axis, operand }))
    }

    /// Adds the residual, or the gate.
    fn add_residual<'s>(
        &'s self,
        batch: &Batch,
        sizes: [usize; 2],
        operands: &mut Operands<'s>,
    ) -> Result<Option<Operand>> {
        let Some(residual) = &self.residual else { return Ok(None) };
        let (name, turned) =
            (if self.gate.is_some() { "gate" } else { "residual" }, self.is_turned());
        same_shape(name, residual.rows_and_columns(name)?, sizes, turned)?;
        let (operand, bound) = residual.operand(name, batch.each(name, residual.batch(2))?)?;
        operands.add(Role::Residual, name, residual, bound)?;
        along_rows(name, operand, sizes, turned).map(Some)
    }

    /// Adds the numbers of groups. There are `count` groups, and `before` numbers that do not count
    /// before theirs.
    fn add_groups<'s>(
        &'s self,
        (count, before): (u64, u64),
        operands: &mut Operands<'s>,
    ) -> Result<Option<Grouping>> {
        let Some(form) = &self.groups else { return Ok(None) };
        let (name, numbers) = form.numbers();
        let (operand, bound) = numbers.vector([0; 4]);
        operands.add_buffer(Role::Offsets, name, numbers.context(), bound)?;
        Ok(Some(form.grouping(operand.offset + before, count)))
    }

    fn add_c<'s>(
        &self,
        c: &'s Tensor,
        batch: &Batch,
        sizes: [usize; 2],
        operands: &mut Operands<'s>,
    ) -> Result<Operand> {
        self.context().same(c.context(), "C")?;
        same_shape("C", c.rows_and_columns("C")?, sizes, self.is_turned())?;
        let own = c.batch(2);
        let strides = batch.each("C", own)?;
        if own.map(|(size, _)| size) != batch.sizes() {
            return Err(Error::Shape(format!(
                "C has shape {:?}, the product a batch of {batch}",
                c.shape()
            )));
        }
        let (operand, bound) = c.operand("C", strides)?;
        operands.add_output("C", c, bound)?;
        along_rows("C", operand, sizes, self.is_turned())
    }

    /// Adds the packed copies of prepared operands.
    fn add_copies<'s>(&'s self, operands: &mut Operands<'s>) -> [Option<Copied>; 2] {
        [(Role::A, self.a.own_copy()), (Role::B, self.b.copy())].map(|(role, copy)| {
            let copy = copy.filter(|copy| copy.role == role)?;
            let (storage, copied) = copy.packed.as_ref()?;
            operands.buffers[role.copy() as usize] = Some(Bound::whole(storage));
            Some(*copied)
        })
    }

    /// For groups of rows: how many entries of B there are, and how many numbers lie before the
    /// first that counts.
    fn groups_of_rows(&self) -> Result<Option<(u64, u64)>> {
        match &self.groups {
            Some(Groups::Rows { ends, first, .. }) => self.groups_of((ends, *first)).map(Some),
            Some(Groups::Indexed(_)) => Ok(Some((self.right()?.0[1] as u64, 0))),
            _ => Ok(None),
        }
    }

    /// The number of groups, which come behind `first` other groups, and how many offsets lie
    /// before the end of the very first group.
    pub(super) fn groups_of(&self, (ends, first): (&GroupEnds, usize)) -> Result<(u64, u64)> {
        let ([_, groups], _) = self.right()?;
        Ok((groups as u64, ends.before(self.names()[1], first + groups)?))
    }

    /// The strides of a bias, which may be one vector for all or one for each group; along each
    /// dimension of a batch, one for all or one for each.
    pub(super) fn bias_strides(
        &self,
        bias: &Tensor,
        batch: &Batch,
        length: usize,
    ) -> Result<[u64; 4]> {
        let shape = bias.shape();
        let wanted = |sizes: &[usize]| {
            // Sizes of 1 in front are those of a product without a batch.
            let sizes: Vec<_> = sizes.iter().skip_while(|size| **size == 1).collect();
            let own: String = sizes.iter().map(|size| format!("{size}, ")).collect();
            let each = if own.is_empty() { own } else { format!(" or [{own}{length}]") };
            Error::Shape(format!("bias has shape {shape:?}, wanted [{length}]{each}"))
        };
        let fits = (1..=3).contains(&shape.len()) && shape.last() == Some(&length);
        let own = if fits { bias.batch(1) } else { [(1, 0); 2] };
        match self.groups_of_rows()? {
            Some((groups, _)) => match (own, groups) {
                ([(1, _), (1, _)], _) if fits => Ok([0; 4]),
                ([(1, _), (size, stride)], groups) if fits && size as u64 == groups => {
                    Ok([0, 0, 0, stride as u64])
                }
                (_, groups) => Err(wanted(&[groups as usize])),
            },
            None if fits => batch.each("bias", own),
            None => Err(wanted(&batch.sizes())),
        }
    }
}

/// The operand of an output that is still to be allocated.
fn packed(dtype: DType, batch: &Batch, [m, n]: [usize; 2]) -> Result<Operand> {
    let [outer, inner] = batch.sizes();
    count(&[outer, inner, m, n])?;
    let entries = if outer == 0 { 0 } else { (outer * inner) as u64 };
    let operand = Operand::packed(Format::Dense(dtype), entries, m as u64, n as u64);
    Ok(operand.with_entry_strides(batch.each("C", [(outer, inner * m * n), (inner, m * n)])?))
}

fn same_shape(name: &str, got: [usize; 2], wanted: [usize; 2], turned: bool) -> Result<()> {
    if got == wanted {
        return Ok(());
    }
    let [got, wanted] = [got, wanted].map(|[m, n]| if turned { [n, m] } else { [m, n] });
    Err(Error::Shape(format!("{name} is {got:?}, the product {wanted:?}")))
}

/// The operand of C or the residual, whose rows must be contiguous. A single column that was taken
/// for a row is turned back. `turned` is whether the transpose of the product is computed, for the
/// error's text.
fn along_rows(
    name: &str,
    mut operand: Operand,
    [m, n]: [usize; 2],
    turned: bool,
) -> Result<Operand> {
    if operand.transposed {
        match (m, n) {
            (_, 0..=1) => operand.ld = 1,
            (0, _) => operand.ld = 0,
            (1, _) if operand.ld == 1 => operand.ld = 0,
            _ if turned => {
                return Err(Error::Shape(format!(
                    "strides: {name} must run along its columns, as groups along N do: give a \
                     tensor [N,M], transposed by t()"
                )));
            }
            _ => {
                return Err(Error::Shape(format!(
                    "strides: {name} must run along its rows: give another tensor, or, if there \
                     are no groups, the transposed product, Cᵀ = Bᵀ·Aᵀ"
                )));
            }
        }
        operand.transposed = false;
    }
    Ok(operand)
}
