//! Random operands, made once and used by every shape.

use crate::shapes::Shape;
use tilewise::{Context, DType, Error, Gemm, Result, Tensor, tilewise_core::convert, wgpu};

/// Elements of each timed product that are compared with an f64 sum.
const CHECKED: usize = 64;
/// Inputs are rotated among sets that together exceed any cache by far.
const ROTATED_BYTES: f64 = 256e6;
/// Words of random data. A prime: no stride of a matrix is a multiple of it, so that no two rows are equal.
const BLOCK_WORDS: usize = 1_048_573;
/// Sets begin at multiples of this, which suits every device's bindings and vectors.
const ALIGNMENT: usize = 1024;

/// Storage for all sets of one operand: random data that repeats after a block.
#[derive(Debug)]
struct Pool {
    tensor: Tensor,
    block: Vec<f32>,
}

impl Pool {
    fn new(ctx: &Context, dtype: DType, elements: usize, seed: u64) -> Result<Self> {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut number = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 40) as f32 / (1 << 23) as f32 - 1.0
        };
        let period = BLOCK_WORDS * 4 / dtype.bytes() as usize;
        let bytes = convert::encode(dtype, &(0..period).map(|_| number()).collect::<Vec<_>>());
        let block = convert::decode(dtype, &bytes)?;
        let (Some(device), Some(queue)) = (ctx.device(), ctx.queue()) else {
            let needed = elements * dtype.bytes() as usize;
            let mut all = Vec::new();
            all.try_reserve_exact(needed)
                .map_err(|why| Error::Device(format!("no memory for {needed} bytes: {why}")))?;
            all.extend(bytes.iter().copied().cycle().take(needed));
            return Ok(Pool { tensor: Tensor::from_bytes(ctx, dtype, &all, &[elements])?, block });
        };
        let source = Tensor::from_bytes(ctx, dtype, &bytes, &[period])?;
        let tensor = Tensor::zeros(ctx, dtype, &[elements])?;
        if let (Some((from, _)), Some((to, _))) = (source.buffer(), tensor.buffer()) {
            let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            for at in (0..to.size()).step_by(bytes.len()) {
                encoder.copy_buffer_to_buffer(from, 0, to, at, (to.size() - at).min(bytes.len() as u64));
            }
            queue.submit([encoder.finish()]);
        }
        Ok(Pool { tensor, block })
    }

    fn view(&self, start: usize, [batch, rows, cols]: [usize; 3], transposed: bool) -> Result<Tensor> {
        let stored = if transposed { [batch, cols, rows] } else { [batch, rows, cols] };
        let all = start..start + batch * rows * cols;
        let matrix = self.tensor.slice(std::slice::from_ref(&all))?;
        let matrix = if batch == 1 { matrix.reshape(&stored[1..]) } else { matrix.reshape(&stored) }?;
        Ok(if transposed { matrix.t() } else { matrix })
    }
}

/// Storage for A and B, kept from one shape to the next while it is large enough.
#[derive(Debug, Default)]
pub struct Inputs {
    pools: Option<[Pool; 2]>,
    /// Whether sums of f16 products may be f16.
    pub allow_f16_accumulation: bool,
}

/// The operands of one shape, and what some elements of the first set's product must be.
#[derive(Debug)]
pub struct Operands {
    sets: Vec<[Tensor; 2]>,
    c: Tensor,
    allow_f16_accumulation: bool,
    expected: Vec<Expected>,
}

#[derive(Debug)]
struct Expected {
    row: usize,
    col: usize,
    sum: f64,
    bound: f64,
}

impl Inputs {
    /// Operands for `shape`, in as many sets as exceed the caches.
    ///
    /// # Errors
    /// `TooLarge` for the device's buffers, `Overflow`, `Device` when its memory is spent, `DeviceLost`.
    pub fn operands(&mut self, ctx: &Context, shape: &Shape, software: bool) -> Result<Operands> {
        let [m, n, k] = shape.mnk;
        let sizes = [[shape.batch, m, k], [shape.batch, k, n]];
        let strides = sizes.map(|size| size.iter().product::<usize>().next_multiple_of(ALIGNMENT));
        let most = ctx.caps().max_buffer_bytes / shape.dtype.bytes() / strides[0].max(strides[1]) as u64;
        let sets = if software { 1 } else { (ROTATED_BYTES / shape.bytes()) as usize };
        let sets = sets.clamp(1, 256).min(most.max(1) as usize);
        let needed = strides.map(|stride| stride * sets);
        let pools = match self.pools.take() {
            Some(pools) if (0..2).all(|at| serves(&pools[at], shape.dtype, needed[at])) => pools,
            // What is too small is given back before more is asked for.
            dropped => {
                drop(dropped);
                [Pool::new(ctx, shape.dtype, needed[0], 1)?, Pool::new(ctx, shape.dtype, needed[1], 2)?]
            }
        };
        let pools = self.pools.insert(pools);
        let view = |at: usize, set: usize| pools[at].view(set * strides[at], sizes[at], shape.transposed()[at]);
        let sets = (0..sets).map(|set| Ok([view(0, set)?, view(1, set)?])).collect::<Result<_>>()?;
        let c = if shape.batch == 1 { vec![m, n] } else { vec![shape.batch, m, n] };
        let c = Tensor::zeros(ctx, shape.dtype, &c)?;
        let half = self.allow_f16_accumulation && shape.dtype == DType::F16;
        let sums = if half { DType::F16 } else { DType::F32 };
        let expected = expected(shape, sums, &pools[0].block, &pools[1].block);
        Ok(Operands { sets, c, allow_f16_accumulation: half, expected })
    }
}

fn serves(pool: &Pool, dtype: DType, elements: usize) -> bool {
    pool.tensor.dtype() == dtype && pool.tensor.elements() >= elements
}

/// Elements spread over the output, all corners among them, as sums in f64. The bound is that of a sum of K products in the type `sums` and one
/// rounding, as in the oracle.
fn expected(shape: &Shape, sums: DType, a: &[f32], b: &[f32]) -> Vec<Expected> {
    let [m, n, k] = shape.mnk;
    let [a_transposed, b_transposed] = shape.transposed();
    let rows = m.saturating_mul(shape.batch);
    let tried_rows = rows.min((CHECKED / n).max(8));
    let tried_cols = n.min(CHECKED / tried_rows);
    let spread = |at: usize, tried: usize, len: usize| if tried < 2 { 0 } else { at * (len - 1) / (tried - 1) };
    let mut expected = Vec::new();
    for i in 0..tried_rows {
        let row = spread(i, tried_rows, rows);
        let (entry, own) = (row / m, row % m);
        for j in 0..tried_cols {
            let col = spread(j, tried_cols, n);
            let a_at = |l: usize| entry * m * k + if a_transposed { l * m + own } else { own * k + l };
            let b_at = |l: usize| entry * k * n + if b_transposed { col * k + l } else { l * n + col };
            let terms = (0..k).map(|l| f64::from(a[a_at(l) % a.len()]) * f64::from(b[b_at(l) % b.len()]));
            let (sum, size) = terms.fold((0.0, 0.0), |(sum, size), term| (sum + term, size + f64::abs(term)));
            let gamma = (k as f64).min(8.0 * (k as f64).sqrt()) * 2.0 * sums.unit_roundoff();
            let bound = gamma * size + shape.dtype.unit_roundoff() * f64::abs(sum) + 1e-30;
            expected.push(Expected { row, col, sum, bound });
        }
    }
    expected
}

impl Operands {
    /// The product of one of the sets, by the kernel of this name, or by the planner's choice.
    pub fn product(&self, set: usize, kernel: Option<&str>) -> Gemm<'_> {
        let [a, b] = &self.sets[set % self.sets.len()];
        let gemm = Gemm::new(a, b).allow_f16_accumulation(self.allow_f16_accumulation);
        match kernel {
            Some(name) => gemm.kernel(name),
            None => gemm,
        }
    }

    /// The output of every set's product.
    pub fn output(&self) -> &Tensor {
        &self.c
    }

    /// Computes the first set's product, by the kernel of this name if one is given, and compares elements with sums in f64.
    ///
    /// # Errors
    /// `Data` when one is wrong; those of the product and of reading.
    pub fn check(&self, kernel: Option<&str>) -> Result<()> {
        // A kernel that writes nothing must not pass by what another left.
        let context = self.c.context();
        if let (Some(device), Some(queue), Some((c, _))) = (context.device(), context.queue(), self.c.buffer()) {
            let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            encoder.clear_buffer(c, 0, None);
            queue.submit([encoder.finish()]);
        }
        self.product(0, kernel).run_into(&self.c)?;
        self.compare()
    }

    /// `Data` unless the output holds the first set's product.
    fn compare(&self) -> Result<()> {
        let shape = self.c.shape();
        let n = shape[shape.len() - 1];
        let rows = self.c.reshape(&[self.c.elements() / n, n])?;
        for same in self.expected.chunk_by(|one, other| one.row == other.row) {
            let row = same[0].row;
            let computed = rows.slice(&[row..row + 1, 0..n])?.read_f32_blocking()?;
            for &Expected { col, sum, bound, .. } in same {
                let got = f64::from(computed[col]);
                let error = (got - sum).abs();
                if error.is_nan() || error > bound {
                    return Err(Error::Data(format!("C[{row},{col}] is {got}, expected {sum} within {bound:e}")));
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
        for name in ["5x7x9", "70x3x20:tn:f16", "1x200x33:nt:bf16:x3", "200x1x8:tt:x2"] {
            let shape: Shape = name.parse().unwrap();
            let operands = inputs.operands(&ctx, &shape, true).unwrap();
            assert!(matches!(operands.compare(), Err(Error::Data(_))), "{name}: zeros pass");
            operands.check(None).unwrap_or_else(|error| panic!("{name}: {error}"));
            let places: Vec<_> = operands.expected.iter().map(|expected| (expected.row, expected.col)).collect();
            let [last_row, last_col] = [shape.mnk[0] * shape.batch - 1, shape.mnk[1] - 1];
            for corner in [(0, 0), (0, last_col), (last_row, 0), (last_row, last_col)] {
                assert!(places.contains(&corner), "{name}: {corner:?} is not looked at");
            }
            assert!(
                places.len() <= CHECKED && places.len() >= CHECKED.min((last_row + 1) * (last_col + 1)) / 2,
                "{name}: {places:?}"
            );
        }
    }
}
