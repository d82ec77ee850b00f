//! Random operands, made once and used by every shape.

use crate::shapes::Shape;
use tilewise::{
    Context, DType, Error, Gemm, GroupOffsets, Precision, PreparedQuantizedTensor, PreparedTensor,
    QuantFormat, QuantizedTensor, Result, RightOperand, Tensor, wgpu,
};
use tilewise_core::Problem;
use tilewise_core::convert;
use tilewise_core::kernel::Language;
use tilewise_core::quant::{Quantized, dequantize};

/// Elements of each timed product that are compared with an f64 sum.
const CHECKED: usize = 64;
/// Inputs are rotated among sets that together exceed any cache by far.
const ROTATED_BYTES: f64 = 256e6;
/// Words of random data. A prime: no stride of a matrix is a multiple of it, so that no two rows
/// are equal.
const BLOCK_WORDS: usize = 1_048_573;
/// Blocks of random quantized weights. A prime, for the same reason.
const QUANTIZED_BLOCKS: usize = 16_381;
/// Sets begin at multiples of this, which suits every device's bindings and vectors.
const ALIGNMENT: usize = 1024;

/// Numbers in [−1, 1).
pub(crate) fn random(count: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let number = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..count).map(number).collect()
}

/// Storage for all sets of one operand: random data that repeats after a block.
#[derive(Debug)]
struct Pool {
    tensor: Tensor,
    block: Vec<f32>,
}

impl Pool {
    fn new(ctx: &Context, dtype: DType, elements: usize, seed: u64) -> Result<Self> {
        let period = BLOCK_WORDS * 4 / dtype.bytes() as usize;
        let bytes = convert::encode(dtype, &random(period, seed));
        let block = convert::decode(dtype, &bytes)?;
        let (Some(device), Some(queue)) = (ctx.device(), ctx.queue()) else {
            let needed = elements * dtype.bytes() as usize;
            let mut all = Vec::new();
            all.try_reserve_exact(needed)
                .map_err(|why| Error::OutOfMemory(format!("{needed} bytes: {why}")))?;
            all.extend(bytes.iter().copied().cycle().take(needed));
            return Ok(Pool { tensor: Tensor::from_bytes(ctx, dtype, &all, &[elements])?, block });
        };
        let source = Tensor::from_bytes(ctx, dtype, &bytes, &[period])?;
        let tensor = Tensor::zeros(ctx, dtype, &[elements])?;
        if let (Some((from, _)), Some((to, _))) = (source.buffer(), tensor.buffer()) {
            let mut encoder =
                device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            for at in (0..to.size()).step_by(bytes.len()) {
                encoder.copy_buffer_to_buffer(
                    from,
                    0,
                    to,
                    at,
                    (to.size() - at).min(bytes.len() as u64),
                );
            }
            queue.submit([encoder.finish()]);
        }
        Ok(Pool { tensor, block })
    }

    fn view(
        &self,
        start: usize,
        [batch, rows, cols]: [usize; 3],
        transposed: bool,
    ) -> Result<Tensor> {
        let stored = if transposed { [batch, cols, rows] } else { [batch, rows, cols] };
        let all = start..start + batch * rows * cols;
        let matrix = self.tensor.slice(std::slice::from_ref(&all))?;
        let matrix =
            if batch == 1 { matrix.reshape(&stored[1..]) } else { matrix.reshape(&stored) }?;
        Ok(if transposed { matrix.t() } else { matrix })
    }
}

/// Random quantized weights that repeat after some blocks.
struct Weights {
    /// A matrix for each entry of B.
    entries: Vec<Quantized>,
    values: Values,
}

impl Weights {
    fn new(
        format: QuantFormat,
        entries: usize,
        [n, k]: [usize; 2],
        activations: DType,
    ) -> Result<Self> {
        let period = QUANTIZED_BLOCKS * format.block() as usize;
        let mut words = random(period, 2).into_iter().cycle().map(f32::to_bits);
        let repeated = Quantized::sample(format, 1, period, || {
            words.next().unwrap_or_default().wrapping_mul(0x9e37_79b1) >> 8
        })?;
        let blocks = n * k / format.block() as usize;
        let entry = |entry: usize| {
            let plane = |(plane, bytes): (&Vec<u8>, usize)| {
                let first = entry * blocks % QUANTIZED_BLOCKS * (plane.len() / QUANTIZED_BLOCKS);
                plane.iter().copied().cycle().skip(first).take(bytes).collect()
            };
            let planes = repeated.planes().iter().zip(format.sizes(n, k)?).map(plane).collect();
            Quantized::from_planes(format, n, k, planes)
        };
        let errors = [repeated.summed_error(), repeated.rounded_error(&[activations, DType::F16])];
        let values = Values { numbers: dequantize(&repeated), errors: Some(errors) };
        Ok(Weights { entries: (0..entries).map(entry).collect::<Result<_>>()?, values })
    }
}

/// What the storage of B repeats.
struct Values {
    numbers: Vec<f32>,
    /// Of quantized weights, how far a kernel's may lie from them; of a kernel that rounds them to
    /// the type of the activations, as those in MSL and on matrix units do.
    errors: Option<[Vec<f64>; 2]>,
}

/// Storage for A and B, kept from one shape to the next while it is large enough.
#[derive(Debug, Default)]
pub struct Inputs {
    pools: [Option<Pool>; 2],
}

/// The operands of one shape, and what some elements of the first set's product must be.
#[derive(Debug)]
pub struct Operands {
    sets: Vec<(A, B)>,
    c: Tensor,
    offsets: Option<GroupOffsets>,
    precision: Precision,
    expected: Vec<Expected>,
}

#[derive(Debug)]
enum A {
    Dense(Tensor),
    Prepared(PreparedTensor),
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
    Prepared(PreparedTensor),
    Quantized(QuantizedTensor),
    PreparedQuantized(PreparedQuantizedTensor),
}

#[derive(Debug)]
struct Expected {
    row: usize,
    col: usize,
    sum: f64,
    /// For kernels that take weights exactly, and for kernels that round them.
    bounds: [f64; 2],
}

impl Inputs {
    /// Operands for `shape`, in as many sets as exceed the caches.
    ///
    /// # Errors
    /// `TooLarge` for the device's buffers, `Overflow`, `Device` when its memory is spent,
    /// `DeviceLost`.
    pub fn operands(&mut self, ctx: &Context, shape: &Shape, software: bool) -> Result<Operands> {
        self.ragged(ctx, shape, &shape.ends(), software)
    }

    /// As [`operands`](Self::operands). With `ends` it is a grouped product: each group of A's rows
    /// ends there and has its own B, and the last end is the last row.
    ///
    /// # Errors
    /// As [`operands`](Self::operands); `GroupOffsets` for ends that decrease.
    pub fn ragged(
        &mut self,
        ctx: &Context,
        shape: &Shape,
        ends: &[u32],
        software: bool,
    ) -> Result<Operands> {
        let [m, n, k] = shape.mnk;
        let entries = if ends.is_empty() { shape.batch } else { ends.len() };
        let sizes = [[shape.batch, m, k], [entries, k, n]];
        let strides = sizes.map(|size| size.iter().product::<usize>().next_multiple_of(ALIGNMENT));
        let most =
            ctx.caps().max_buffer_bytes / shape.dtype.bytes() / strides[0].max(strides[1]) as u64;
        // Of experts without rows nothing is read.
        let bytes = match shape.experts {
            Some(_) => shape.bytes(),
            None => shape.bytes() + (entries - shape.batch) as f64 * shape.b_bytes(),
        };
        let sets = if software { 1 } else { (ROTATED_BYTES / bytes) as usize };
        let sets = sets.clamp(1, 256).min(most.max(1) as usize);
        let quantized = shape
            .quantized
            .map(|format| Weights::new(format, entries, [n, k], shape.dtype))
            .transpose()?;
        let needed =
            [0, 1].map(|at| if at == 1 && quantized.is_some() { 0 } else { strides[at] * sets });
        // What is too small is given back before more is asked for.
        for (pool, needed) in self.pools.iter_mut().zip(needed) {
            pool.take_if(|pool| needed > 0 && !serves(pool, shape.dtype, needed));
        }
        for at in (0..2).filter(|&at| needed[at] > 0) {
            if self.pools[at].is_none() {
                self.pools[at] = Some(Pool::new(ctx, shape.dtype, needed[at], at as u64 + 1)?);
            }
        }
        let pool = |at: usize| self.pools[at].as_ref().expect("it was made");
        let view = |at: usize, set: usize| {
            pool(at).view(set * strides[at], sizes[at], shape.transposed()[at])
        };
        let precision = shape.precision.unwrap_or_default();
        let a = |set: usize| match shape.prepared {
            "prepared" => {
                view(0, set).and_then(|a| PreparedTensor::left_for(&a, precision)).map(A::Prepared)
            }
            _ => view(0, set).map(A::Dense),
        };
        let b = |set: usize| match &quantized {
            Some(weights) => {
                let weights = QuantizedTensor::upload_groups(ctx, &weights.entries)?;
                match shape.prepared {
                    "" => Ok(B::Quantized(weights)),
                    _ => PreparedQuantizedTensor::new(&weights).map(B::PreparedQuantized),
                }
            }
            None if shape.prepared.is_empty() => view(1, set).map(B::Dense),
            None => {
                view(1, set).and_then(|b| PreparedTensor::right_for(&b, precision)).map(B::Prepared)
            }
        };
        let sets = (0..sets).map(|set| Ok((a(set)?, b(set)?))).collect::<Result<_>>()?;
        let c = if shape.batch == 1 { vec![m, n] } else { vec![shape.batch, m, n] };
        let c = Tensor::zeros(ctx, shape.dtype, &c)?;
        let problem = Problem { precision, ..shape.problem() };
        let dense = || Values { numbers: pool(1).block.clone(), errors: None };
        let b = quantized.map_or_else(dense, |weights| weights.values);
        let expected = expected(shape, ends, &problem, &pool(0).block, &b);
        let offsets = if ends.is_empty() { None } else { Some(GroupOffsets::upload(ctx, ends)?) };
        Ok(Operands { sets, c, offsets, precision, expected })
    }
}

fn serves(pool: &Pool, dtype: DType, elements: usize) -> bool {
    pool.tensor.dtype() == dtype && pool.tensor.elem_count() >= elements
}

/// Elements spread over the output, all corners among them, as sums in f64. The bound is that of a
/// sum of K products in the type of the problem's sums and one rounding, as in the oracle, and of
/// activations that are taken in bytes.
fn expected(
    shape: &Shape,
    ends: &[u32],
    problem: &Problem,
    a: &[f32],
    b: &Values,
) -> Vec<Expected> {
    let [m, n, k] = shape.mnk;
    let (sums, lost) = (problem.accumulation(), problem.activation_error());
    let [a_transposed, b_transposed] = shape.transposed();
    let rows = m.saturating_mul(shape.batch);
    let tried_rows = rows.min((CHECKED / n).max(8));
    let tried_cols = n.min(CHECKED / tried_rows);
    let spread = |at: usize, tried: usize, len: usize| {
        if tried < 2 { 0 } else { at * (len - 1) / (tried - 1) }
    };
    let period = b.numbers.len();
    let mut expected = Vec::new();
    for i in 0..tried_rows {
        let row = spread(i, tried_rows, rows);
        let (entry, own) = (row / m, row % m);
        let b_entry =
            if ends.is_empty() { entry } else { ends.partition_point(|&end| end as usize <= row) };
        for j in 0..tried_cols {
            let col = spread(j, tried_cols, n);
            let a_at =
                |l: usize| entry * m * k + if a_transposed { l * m + own } else { own * k + l };
            let b_at =
                |l: usize| b_entry * k * n + if b_transposed { col * k + l } else { l * n + col };
            let (mut sum, mut size, mut errors) = (0.0, 0.0, [0.0; 2]);
            let a_of = |l: usize| f64::from(a[a_at(l) % a.len()]);
            let mut largest = 0.0;
            for l in 0..k {
                if lost > 0.0 && l % 32 == 0 {
                    largest = (l..k.min(l + 32)).map(|l| a_of(l).abs()).fold(0.0, f64::max);
                }
                let (a, at) = (a_of(l), b_at(l) % period);
                let term = a * f64::from(b.numbers[at]);
                (sum, size) = (sum + term, size + f64::abs(term));
                if let Some(of) = &b.errors {
                    let weight = f64::from(b.numbers[at].abs());
                    errors = [0, 1].map(|which| {
                        errors[which] + a.abs() * of[which][at] + lost * largest * weight
                    });
                }
            }
            let gamma = (k as f64).min(8.0 * (k as f64).sqrt()) * 2.0 * sums.unit_roundoff();
            let bound = gamma * size + shape.dtype.unit_roundoff() * f64::abs(sum) + 1e-30;
            let grown = 1.0 + shape.dtype.unit_roundoff() + gamma;
            expected.push(Expected {
                row,
                col,
                sum,
                bounds: errors.map(|error| bound + grown * error),
            });
        }
    }
    expected
}

impl Operands {
    /// The product of one of the sets, by the kernel of this name, or by the planner's choice.
    pub fn product(&self, set: usize, kernel: Option<&str>) -> Gemm {
        let (a, b) = &self.sets[set % self.sets.len()];
        let a = a.tensor();
        let b = match b {
            B::Dense(tensor) => RightOperand::from(tensor),
            B::Prepared(prepared) => RightOperand::from(prepared),
            B::Quantized(weights) => RightOperand::from(weights),
            B::PreparedQuantized(weights) => RightOperand::from(weights),
        };
        let gemm = match &self.offsets {
            Some(offsets) => Gemm::grouped(a, b, offsets),
            None => Gemm::new(a, b),
        };
        let gemm = gemm.precision(self.precision);
        match kernel {
            Some(name) => gemm.kernel(name),
            None => gemm,
        }
    }

    /// How many sets there are.
    pub fn sets(&self) -> usize {
        self.sets.len()
    }

    /// A and B of one of the sets. A quantized B is not there.
    pub fn dense(&self, set: usize) -> Option<[&Tensor; 2]> {
        match &self.sets[set % self.sets.len()] {
            (a, B::Dense(b)) => Some([a.tensor(), b]),
            _ => None,
        }
    }

    /// The output of every set's product.
    pub fn output(&self) -> &Tensor {
        &self.c
    }

    /// Computes the first set's product, by the kernel of this name if one is given, and compares
    /// elements with sums in f64.
    ///
    /// # Errors
    /// `Data` when one is wrong; those of the product and of reading.
    pub fn check(&self, kernel: Option<&str>) -> Result<()> {
        self.clear();
        self.product(0, kernel).run_into(&self.c)?;
        // Only now: what a device does not compile has been replaced.
        let plan = self.product(0, kernel).plan()?;
        self.compare(plan.passes.iter().any(|pass| pass.language == Language::Msl || pass.coop))
    }

    /// Has `run` compute the first set's product, and compares elements with sums in f64.
    ///
    /// # Errors
    /// As [`check`](Self::check), and those of `run`.
    pub fn check_after(&self, run: impl FnOnce() -> Result<()>) -> Result<()> {
        self.clear();
        run()?;
        self.compare(true)
    }

    /// A kernel that writes nothing must not pass by what another left.
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

    /// `Data` unless the output holds the first set's product, of weights that the kernel `rounds`
    /// or does not.
    fn compare(&self, rounds: bool) -> Result<()> {
        let shape = self.c.shape();
        let n = shape[shape.len() - 1];
        let rows = self.c.reshape(&[self.c.elem_count() / n, n])?;
        for same in self.expected.chunk_by(|one, other| one.row == other.row) {
            let row = same[0].row;
            let computed = rows.slice(&[row..row + 1, 0..n])?.read_f32_blocking()?;
            for &Expected { col, sum, bounds, .. } in same {
                let (got, bound) = (f64::from(computed[col]), bounds[usize::from(rounds)]);
                let error = (got - sum).abs();
                if error.is_nan() || error > bound {
                    return Err(Error::Malformed(format!(
                        "C[{row},{col}] is {got}, expected {sum} within {bound:e}"
                    )));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_found() {
        let ctx = Context::cpu();
        let mut inputs = Inputs::default();
        for name in [
            "5x7x9",
            "70x3x20:tn:f16",
            "1x200x33:nt:bf16:x3",
            "200x1x8:tt:x2",
            "3x40x128:mxfp4:x2",
            "9x7x20:bf16:prepared",
            "3x40x128:f16:mxfp4:prepared-b",
        ] {
            let shape: Shape = name.parse().unwrap();
            let operands = inputs.operands(&ctx, &shape, true).unwrap();
            assert!(
                matches!(operands.compare(true), Err(Error::Malformed(_))),
                "{name}: zeros pass"
            );
            operands.check(None).unwrap_or_else(|error| panic!("{name}: {error}"));
            let places: Vec<_> =
                operands.expected.iter().map(|expected| (expected.row, expected.col)).collect();
            let [last_row, last_col] = [shape.mnk[0] * shape.batch - 1, shape.mnk[1] - 1];
            for corner in [(0, 0), (0, last_col), (last_row, 0), (last_row, last_col)] {
                assert!(places.contains(&corner), "{name}: {corner:?} is not looked at");
            }
            assert!(
                places.len() <= CHECKED
                    && places.len() >= CHECKED.min((last_row + 1) * (last_col + 1)) / 2,
                "{name}: {places:?}"
            );
        }
    }

    /// Each group has other weights.
    #[test]
    fn groups_are_told_apart() {
        let ctx = Context::cpu();
        let mut inputs = Inputs::default();
        for name in ["12x6x32:nt:f16", "12x6x64:f16:affine-4bit-g64-f16"] {
            let shape: Shape = name.parse().unwrap();
            let operands = inputs.ragged(&ctx, &shape, &[5, 5, 12], true).unwrap();
            operands.check(None).unwrap_or_else(|error| panic!("{name}: {error}"));
            let all_in_one = inputs.ragged(&ctx, &shape, &[12, 12, 12], true).unwrap();
            let mixed = Operands { expected: all_in_one.expected, ..operands };
            assert!(matches!(mixed.compare(true), Err(Error::Malformed(_))), "{name}");
        }
    }
}
