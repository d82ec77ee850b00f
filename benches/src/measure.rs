//! Timing one shape, and checking that what was timed is right.

use crate::shapes::Shape;
use tilewise::{Context, Error, Gemm, Result, Tensor, tilewise_core::convert, timing};

/// Elements of each timed product that are compared with an f64 sum.
const CHECKED: usize = 64;
/// Inputs are rotated among sets that together exceed any cache by far.
const ROTATED_BYTES: f64 = 256e6;

/// Seconds of GPU time before the first sample. An idle chip lowers its clock, and some take long to raise it: an H200 was seen to run at half speed
/// when the pauses between measurements were longer than the measurements.
pub const WARM_UP: f64 = 0.5;

/// The times of one shape.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The kernel that ran.
    pub kernel: String,
    /// Seconds of one product: median, least, greatest.
    pub seconds: [f64; 3],
    /// How they were measured.
    pub method: timing::Method,
}

/// The middle of the samples.
pub fn median(samples: &mut [f64]) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

/// Times a shape: warm-up, then `samples` compute passes of as many products as fill about five milliseconds.
///
/// # Errors
/// Those of the product; `Data` when a checked element is wrong.
pub fn measure(ctx: &Context, shape: &Shape, kernel: Option<&str>, samples: usize) -> Result<Measured> {
    let [m, n, k] = shape.mnk;
    let transposed = |at: usize| shape.layout.as_bytes()[at] == b'T';
    let sets = ((ROTATED_BYTES / shape.bytes()) as usize).clamp(1, 16);
    let sets = if ctx.caps().class == tilewise::tilewise_core::DeviceClass::Cpu { 1 } else { sets };
    let mut operands = Vec::new();
    for set in 0..sets {
        operands.push((
            Matrix::new(ctx, shape, [m, k], transposed(0), set as u64)?,
            Matrix::new(ctx, shape, [k, n], transposed(1), 100 + set as u64)?,
        ));
    }
    let c = Tensor::zeros(ctx, shape.dtype, &[m, n])?;
    let product = |set: usize| {
        let (a, b) = &operands[set % sets];
        let gemm = Gemm::new(&a.tensor, &b.tensor);
        match kernel {
            Some(name) => gemm.kernel(name),
            None => gemm,
        }
    };
    let choice = product(0).plan()?.choice.map_or_else(String::new, |choice| choice.to_string());
    product(0).run_into(&c)?;
    check(&operands[0], &c, shape)?;

    let time = |repetitions: usize| {
        pollster::block_on(timing::time(ctx, |mut pass| {
            for set in 0..repetitions {
                match &mut pass {
                    Some(pass) => product(set).record(pass, &c)?,
                    None => product(set).run_into(&c)?,
                }
            }
            Ok(())
        }))
    };
    let once = time(1)?;
    let repetitions = ((5e-3 / once.seconds.max(1e-7)) as usize).clamp(1, 200);
    let mut warm = 0.0;
    while warm < WARM_UP {
        warm += time(repetitions)?.seconds;
    }
    let mut seconds = Vec::new();
    for _ in 0..samples.max(1) {
        seconds.push(time(repetitions)?.seconds / repetitions as f64);
    }
    let middle = median(&mut seconds);
    Ok(Measured { kernel: choice, seconds: [middle, seconds[0], seconds[seconds.len() - 1]], method: once.method })
}

/// A random matrix, on the device as the layout wants it and on the host as the device rounds it.
struct Matrix {
    tensor: Tensor,
    host: Vec<f32>,
    strides: [usize; 2],
}

impl Matrix {
    fn new(ctx: &Context, shape: &Shape, [rows, cols]: [usize; 2], transposed: bool, seed: u64) -> Result<Self> {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let values: Vec<f32> = (0..rows * cols)
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                (state >> 40) as f32 / (1 << 23) as f32 - 1.0
            })
            .collect();
        let bytes = convert::encode(shape.dtype, &values);
        let stored = if transposed { [cols, rows] } else { [rows, cols] };
        let tensor = Tensor::from_bytes(ctx, shape.dtype, &bytes, &stored)?;
        let host = convert::decode(shape.dtype, &bytes)?;
        Ok(Matrix {
            tensor: if transposed { tensor.t() } else { tensor },
            host,
            strides: if transposed { [1, rows] } else { [cols, 1] },
        })
    }

    fn at(&self, row: usize, col: usize) -> f64 {
        f64::from(self.host[row * self.strides[0] + col * self.strides[1]])
    }
}

/// Compares elements spread over the output, the corners among them, with sums in f64. The bound is that of a sum of K products in f32 and one
/// rounding, as in the oracle.
fn check((a, b): &(Matrix, Matrix), c: &Tensor, shape: &Shape) -> Result<()> {
    let [m, n, k] = shape.mnk;
    let computed = c.read_f32_blocking()?;
    for i in 0..CHECKED {
        let (row, col) = (i * (m - 1) / (CHECKED - 1), (i * 37 % CHECKED) * (n - 1) / (CHECKED - 1));
        let terms = (0..k).map(|at| a.at(row, at) * b.at(at, col));
        let (sum, size) = terms.fold((0.0, 0.0), |(sum, size), term| (sum + term, size + f64::abs(term)));
        let got = f64::from(computed[row * n + col]);
        let gamma = (k as f64).min(8.0 * (k as f64).sqrt()) * f64::from(f32::EPSILON);
        let bound = gamma * size + shape.dtype.unit_roundoff() * sum.abs() + 1e-30;
        let error = (got - sum).abs();
        if error.is_nan() || error > bound {
            return Err(Error::Data(format!(
                "{}: C[{row},{col}] is {got}, expected {sum} within {bound:e}",
                shape.name
            )));
        }
    }
    Ok(())
}
