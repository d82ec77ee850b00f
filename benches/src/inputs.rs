//! Random operands, made once and used by every shape.

mod expected;
mod storage;
#[cfg(test)]
mod tests;

use crate::shapes::{Experts, Part, Place, Shape, Sharing, shuffled};
use expected::{Expected, Sources, expected};
use std::fmt::Display;
use storage::{Pool, Values, Weights};
use tilewise::{
    Activation, Context, DType, Error, Gemm, GroupEnds, Precision, Prepared, ProductList,
    ProductShape, QuantFormat, QuantizedTensor, Result, RightOperand, Shards, Tensor, wgpu,
};
use tilewise_core::kernel::Language;
use tilewise_core::plan::Plan;

/// Inputs are rotated among sets that together exceed any cache by far.
const ROTATED_BYTES: f64 = 256e6;
/// Sets begin at multiples of this, which suits every device's bindings and vectors.
const ALIGNMENT: usize = 1024;

/// Begins the text of the error of a wrong result.
const WRONG: &str = "wrong result: ";

/// The error of a wrong result.
pub fn wrong(text: impl Display) -> Error {
    Error::Device { text: format!("{WRONG}{text}"), source: None }
}

/// Whether an error is of a wrong result.
pub fn is_wrong(error: &Error) -> bool {
    matches!(error, Error::Device { text, .. } if text.starts_with(WRONG))
}

/// Storage for A, B and the gate, kept from one shape to the next while it is large enough, and the
/// quantized weights of the last shape, kept while only the number of rows differs.
#[derive(Debug, Default)]
pub struct Inputs {
    pools: [Option<Pool>; 3],
    quantized: Option<Uploaded>,
}

/// The operands of one shape, and the values that some elements of the first set's product must
/// have.
#[derive(Debug)]
pub struct Operands {
    sets: Vec<(A, B, Option<Tensor>)>,
    c: Tensor,
    groups: Groups,
    /// The row of A for each row of the product.
    rows: Option<Tensor>,
    precision: Precision,
    expected: Vec<Expected>,
}

/// The numbers of groups, on the device.
#[derive(Debug)]
enum Groups {
    None,
    Rows(GroupEnds),
    /// The group of each row.
    Indexed(Tensor),
    /// Counts of rows, and the expected number of rows.
    Masked(Tensor, Option<usize>),
    AlongK(GroupEnds),
    List(ProductList),
}

#[derive(Debug)]
enum A {
    Dense(Tensor),
    Prepared(Prepared<Tensor>),
}

impl A {
    fn tensor(&self) -> &Tensor {
        match self {
            A::Dense(tensor) => tensor,
            A::Prepared(prepared) => prepared,
        }
    }
}

#[derive(Debug)]
enum B {
    Dense(Tensor),
    Prepared(Prepared<Tensor>),
    Quantized(QuantizedTensor),
    PreparedQuantized(Prepared<QuantizedTensor>),
    /// A stack that does not fit one buffer.
    Shards(Shards),
}

/// Random quantized weights on the device.
#[derive(Debug)]
struct Uploaded {
    /// Format, matrices, their shape, and the type of the activations.
    of: (QuantFormat, usize, [usize; 2], DType),
    weights: Weights,
    sets: Vec<QuantizedTensor>,
}

impl Uploaded {
    fn new(of: (QuantFormat, usize, [usize; 2], DType)) -> Result<Self> {
        let (format, entries, size, activations) = of;
        let weights = Weights::new(format, entries, size, activations)?;
        Ok(Uploaded { of, weights, sets: Vec::new() })
    }

    /// Uploads until there are `sets`, at least.
    fn extend(&mut self, ctx: &Context, sets: usize) -> Result<()> {
        while self.sets.len() < sets {
            self.sets.push(QuantizedTensor::upload_groups(ctx, &self.weights.entries)?);
        }
        Ok(())
    }
}

impl Inputs {
    /// Operands for `shape`, in as many sets as exceed the caches.
    ///
    /// # Errors
    /// `DeviceLimit` for the device's buffers, `OutOfMemory` when its memory is spent.
    pub fn operands(&mut self, ctx: &Context, shape: &Shape, software: bool) -> Result<Operands> {
        let most = ctx.caps().max_buffer_bytes.min(ctx.caps().max_binding_bytes);
        self.within(ctx, shape, &shape.numbers(), software, most)
    }

    /// Like [`operands`](Self::operands), with `numbers` in place of the shape's own. If the shape
    /// has no groups, `numbers` are ends: each group of A's rows ends there and has its own B, and
    /// the last end is the last row. A stack of dense matrices of more than `most` bytes lies in
    /// several buffers.
    fn within(
        &mut self,
        ctx: &Context,
        shape: &Shape,
        numbers: &[u32],
        software: bool,
        most: u64,
    ) -> Result<Operands> {
        let shards = shape.shards(numbers.len(), most);
        let sizes = shape.storage(numbers.len());
        let [_, [entries, ..], [outputs, rows, columns]] = sizes;
        let strides = sizes.map(|size| size.iter().product::<usize>().next_multiple_of(ALIGNMENT));
        let largest = strides.into_iter().max().unwrap_or(1);
        let most = ctx.caps().max_buffer_bytes / shape.dtype.bytes() / largest as u64;
        // Experts without rows are not read, so their weights do not count.
        let bytes = match shape.experts {
            Some(_) => shape.bytes(),
            None => {
                let [_, n, k] = shape.mnk;
                shape.bytes() + (entries - shape.batch) as f64 * shape.b_bytes([n, k])
            }
        };
        let sets = if software { 1 } else { (ROTATED_BYTES / bytes) as usize };
        let sets = sets.clamp(1, 256).min(most.max(1) as usize);
        let [_, n, k] = shape.mnk;
        let of = shape.quantized.map(|format| (format, entries, [n, k], shape.dtype));
        self.quantized.take_if(|kept| of.is_some_and(|of| of != kept.of));
        if let Some(of) = of {
            let kept = match self.quantized.take() {
                Some(kept) => kept,
                None => Uploaded::new(of)?,
            };
            self.quantized.insert(kept).extend(ctx, sets)?;
        }
        let quantized = self.quantized.as_ref().filter(|_| of.is_some());
        let pooled = [true, quantized.is_none() && shards.is_none(), shape.gated];
        let needed = [0, 1, 2].map(|at| if pooled[at] { strides[at] * sets } else { 0 });
        // Pools that are too small are dropped before more memory is asked for.
        for (pool, needed) in self.pools.iter_mut().zip(needed) {
            pool.take_if(|pool| needed > 0 && !pool.serves(shape.dtype, needed));
        }
        for at in (0..3).filter(|&at| needed[at] > 0) {
            if self.pools[at].is_none() {
                self.pools[at] = Some(Pool::new(ctx, shape.dtype, needed[at], at as u64 + 1)?);
            }
        }
        let pool = |at: usize| self.pools[at].as_ref().expect("it was made");
        let [a_turned, b_turned] = shape.transposed();
        let turned = [a_turned, b_turned, false];
        // Products of a list follow each other, and the layout says how each is stored.
        let listed = shape.experts.is_some_and(|experts| experts.sharing == Sharing::Halves);
        let view = |at: usize, set: usize| {
            pool(at).view(set * strides[at], sizes[at], turned[at] && !listed)
        };
        let precision = shape.precision.unwrap_or_default();
        let a = |set: usize| match shape.prepared {
            "prepared" => {
                view(0, set).and_then(|a| Prepared::left_for(&a, precision)).map(A::Prepared)
            }
            _ => view(0, set).map(A::Dense),
        };
        let sharded = |count: usize| {
            let part = |first: usize| {
                let [_, rows, columns] = sizes[1];
                let size = [count.min(entries - first), rows, columns];
                let [elements, before] = [size[0], first].map(|entries| entries * rows * columns);
                let pool = Pool::behind(ctx, shape.dtype, elements, 2, before)?;
                let b = pool.view(0, size, turned[1])?;
                Ok(match shape.prepared {
                    "" => RightOperand::from(b),
                    _ => RightOperand::from(Prepared::right_for(&b, precision)?),
                })
            };
            let parts: Result<Vec<_>> = (0..entries).step_by(count).map(part).collect();
            Shards::new(parts?).map(B::Shards)
        };
        let b = |set: usize| match quantized {
            None if let Some(count) = shards => sharded(count),
            Some(kept) => match shape.prepared {
                "" => Ok(B::Quantized(kept.sets[set].clone())),
                _ => Prepared::quantized(&kept.sets[set]).map(B::PreparedQuantized),
            },
            None if shape.prepared.is_empty() => view(1, set).map(B::Dense),
            None => view(1, set).and_then(|b| Prepared::right_for(&b, precision)).map(B::Prepared),
        };
        let gate = |set: usize| shape.gated.then(|| view(2, set)).transpose();
        let sets =
            (0..sets).map(|set| Ok((a(set)?, b(set)?, gate(set)?))).collect::<Result<_>>()?;
        let c = match outputs {
            1 => vec![rows, columns],
            _ => vec![outputs, rows, columns],
        };
        let c = Tensor::zeros(ctx, shape.dtype, &c)?;
        let indices = shape.gathered.then(|| shuffled(rows));
        let block = || Pool::new(ctx, shape.dtype, 1, 2).map(|pool| pool.block);
        let repeated = if needed[1] > 0 { pool(1).block.clone() } else { block()? };
        let dense = Values { numbers: repeated, errors: None };
        let sources = Sources {
            a: &pool(0).block,
            rows: indices.as_deref(),
            b: quantized.map_or(&dense, |kept| &kept.weights.values),
            gate: shape.gated.then(|| &*pool(2).block),
        };
        let expected = expected(shape, numbers, precision, &sources);
        let rows = indices.map(|all| Tensor::upload(ctx, &all, &[all.len()])).transpose()?;
        let groups = Groups::new(ctx, shape, numbers)?;
        Ok(Operands { sets, c, groups, rows, precision, expected })
    }
}

impl Groups {
    fn new(ctx: &Context, shape: &Shape, numbers: &[u32]) -> Result<Self> {
        Ok(match shape.experts.map(|Experts { sharing, .. }| sharing) {
            None if numbers.is_empty() => Groups::None,
            None | Some(Sharing::Even | Sharing::Zipf) => {
                Groups::Rows(GroupEnds::upload(ctx, numbers)?)
            }
            Some(Sharing::Indexed) => {
                Groups::Indexed(Tensor::upload(ctx, numbers, &[numbers.len()])?)
            }
            Some(Sharing::Masked(rows)) => {
                Groups::Masked(Tensor::upload(ctx, numbers, &[numbers.len()])?, rows)
            }
            Some(Sharing::AlongK) => Groups::AlongK(GroupEnds::upload(ctx, numbers)?),
            Some(Sharing::Halves) => {
                let [a, b] = shape.transposed();
                let all: Vec<ProductShape> = shape.parts(&[]).iter().map(listed).collect();
                Groups::List(ProductList::upload(ctx, &all)?.transposed(a, b))
            }
        })
    }
}

/// The sizes and places of a product of a list.
fn listed(Part { mnk, places }: &Part) -> ProductShape {
    let [m, n, k] = mnk.map(|size| size as u32);
    let [[a, lda], [b, ldb], [c, ldc]] =
        places.map(|Place { first, row, col }| [first as u32, row.max(col) as u32]);
    ProductShape { m, n, k, a, lda, b, ldb, c, ldc }
}

impl Operands {
    /// The product of one of the sets, by the kernel of this name, else by the planner's choice.
    pub fn product(&self, set: usize, kernel: Option<&str>) -> Gemm {
        let (a, b, gate) = &self.sets[set % self.sets.len()];
        let a = a.tensor();
        let b = match b {
            B::Dense(tensor) => RightOperand::from(tensor),
            B::Prepared(prepared) => RightOperand::from(prepared),
            B::Quantized(weights) => RightOperand::from(weights),
            B::PreparedQuantized(weights) => RightOperand::from(weights),
            B::Shards(shards) => RightOperand::from(shards),
        };
        let gemm = match (&self.groups, b) {
            (Groups::None, b) => Gemm::new(a, b),
            (Groups::Rows(ends), b) => Gemm::grouped(a, b, ends),
            (Groups::Indexed(indices), b) => Gemm::indexed(a, b, indices),
            (Groups::Masked(counts, rows), b) => {
                let gemm = Gemm::masked(a, b, counts);
                rows.iter().fold(gemm, |gemm, rows| gemm.expect_rows(*rows))
            }
            (Groups::AlongK(ends), RightOperand::Dense(b)) => Gemm::ragged_k(a, &b, ends),
            (Groups::List(list), RightOperand::Dense(b)) => Gemm::list(a, &b, list),
            (Groups::AlongK(_) | Groups::List(_), _) => unreachable!("they are dense"),
        };
        let gemm = match &self.rows {
            Some(rows) => gemm.gather_rows(rows),
            None => gemm,
        };
        let gemm = match gate {
            Some(gate) => gemm.gated_by(gate, Activation::Silu),
            None => gemm,
        };
        let gemm = gemm.precision(self.precision);
        match kernel {
            Some(name) => gemm.kernel(name),
            None => gemm,
        }
    }

    /// The plan of the first set's product, or of its first shard.
    ///
    /// # Errors
    /// The errors of the product.
    pub fn plan(&self, kernel: Option<&str>) -> Result<Plan> {
        let plans = self.product(0, kernel).plans()?;
        plans.into_iter().next().ok_or_else(|| Error::Unsupported("nothing to multiply".into()))
    }

    /// The output, which the products of all sets share.
    pub fn output(&self) -> &Tensor {
        &self.c
    }

    /// Computes the first set's product, by the kernel of this name if one is given, and compares
    /// elements with sums in f64.
    ///
    /// # Errors
    /// `Data` when an element is wrong; the errors of the product and of reading.
    pub fn check(&self, kernel: Option<&str>) -> Result<()> {
        self.clear();
        self.product(0, kernel).run_into(&self.c)?;
        // The plan is made only now, after kernels that do not compile have been replaced.
        let plan = self.plan(kernel)?;
        self.compare(plan.passes.iter().any(|pass| pass.language == Language::Msl || pass.coop))
    }

    /// Clears the output: a kernel that writes nothing must not pass with what another left.
    fn clear(&self) {
        let context = self.c.context();
        if let (Some(device), Some(queue), Some((c, _))) =
            (context.device(), context.queue(), self.c.buffer())
        {
            let mut encoder =
                device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            encoder.clear_buffer(c, 0, None);
            queue.submit([encoder.finish()]);
        }
    }

    /// `Data` unless the output holds the first set's product. `rounds` says whether the kernel
    /// rounds weights.
    fn compare(&self, rounds: bool) -> Result<()> {
        let shape = self.c.shape();
        let n = shape[shape.len() - 1];
        let rows = self.c.reshape(&[self.c.elem_count() / n, n])?;
        for same in self.expected.chunk_by(|one, other| one.row == other.row) {
            let row = same[0].row;
            let computed = rows.slice(&[row..row + 1, 0..n])?.read_f32_blocking()?;
            for &Expected { col, value, bounds, .. } in same {
                let (got, bound) = (f64::from(computed[col]), bounds[usize::from(rounds)]);
                let error = (got - value).abs();
                if error.is_nan() || error > bound {
                    return Err(wrong(format!(
                        "C[{row},{col}] is {got}, expected {value} within {bound:e}"
                    )));
                }
            }
        }
        Ok(())
    }
}
