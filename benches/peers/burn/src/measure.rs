//! Timing one shape, and checking that what was timed is right.

use crate::shape::Shape;
use burn::tensor::{DType, Device, Distribution, Tensor, TimingMethod};
use serde_json::{Value, json};
use std::time::Instant;

/// Elements of each product that are compared with an f64 sum.
const CHECKED: usize = 64;
/// Inputs are rotated among sets that together exceed any cache by far.
const ROTATED_BYTES: f64 = 256e6;
const MOST_SETS: usize = 256;
/// Seconds for which the chip is kept busy before the first sample: an idle chip lowers its clock.
const WARM_UP: f64 = 0.5;

/// Seconds of one sample: the number of products is doubled until they take as long, or until it
/// reaches [`MOST_REPETITIONS`].
const SAMPLE: f64 = 5e-3;
const MOST_REPETITIONS: usize = 256;

/// A and B of one set, [batch, rows, columns], transposed ones as views.
type Operands = (Tensor<3>, Tensor<3>);

/// The row of one shape: the median of `samples` runs, each of as many products as fill about five
/// milliseconds.
///
/// # Errors
/// Burn's errors, and a checked element that is wrong.
pub fn measure(device: &Device, shape: &Shape, samples: usize) -> Result<Value, String> {
    if !device.supports_dtype(DType::from(shape.dtype)) {
        return Err(format!("burn has no {} on this device", shape.dtype_name));
    }
    let [m, n, k] = shape.mnk;
    let sets = ((ROTATED_BYTES / shape.bytes()) as usize).clamp(1, MOST_SETS);
    let matrix = |rows, columns, transposed| {
        let stored =
            if transposed { [shape.batch, columns, rows] } else { [shape.batch, rows, columns] };
        let values = Tensor::<3>::random(
            stored,
            Distribution::Uniform(-1.0, 1.0),
            (device, DType::from(shape.dtype)),
        );
        if transposed { values.swap_dims(1, 2) } else { values }
    };
    let transposed = |at: usize| shape.layout.as_bytes()[at] == b'T';
    let operands: Vec<Operands> =
        (0..sets).map(|_| (matrix(m, k, transposed(0)), matrix(k, n, transposed(1)))).collect();
    device.sync().map_err(|error| error.to_string())?;

    let start = Instant::now();
    let c = product(&operands[0]);
    device.sync().map_err(|error| error.to_string())?;
    let first = start.elapsed().as_secs_f64();
    check(&operands[0], c, shape)?;

    let launch = |repetitions: usize| {
        for set in 0..repetitions {
            product(&operands[set % sets]);
        }
    };
    let by_wall = |repetitions: usize| {
        let start = Instant::now();
        launch(repetitions);
        device.sync().map_err(|error| error.to_string())?;
        Ok::<f64, String>(start.elapsed().as_secs_f64())
    };
    let mut repetitions = 1;
    while repetitions < MOST_REPETITIONS && by_wall(repetitions)? < SAMPLE {
        repetitions *= 2;
    }
    let mut warm = 0.0;
    while warm < WARM_UP {
        warm += by_wall(repetitions)?;
    }
    let sampled = |time: &dyn Fn() -> Result<f64, String>| {
        let mut seconds = (0..samples.max(1))
            .map(|_| Ok(time()? / repetitions as f64))
            .collect::<Result<Vec<_>, String>>()?;
        seconds.sort_by(f64::total_cmp);
        Ok::<_, String>(seconds)
    };
    let wall = sampled(&|| by_wall(repetitions))?;
    let device_times = sampled(&|| by_device(device, || launch(repetitions)));
    let (seconds, method) = match device_times {
        Ok(seconds) => (seconds, "burn's device profile"),
        Err(why) => {
            eprintln!("{}: {why}: timed by the wall clock", shape.name);
            (wall.clone(), "wall clock to a sync")
        }
    };
    let middle = seconds[seconds.len() / 2];
    Ok(json!({
        "shape": shape.name, "m": m, "n": n, "k": k, "batch": shape.batch,
        "layout": shape.layout, "dtype": shape.dtype_name,
        "kernel": "autotuned", "ms": middle * 1e3,
        "spread": (seconds[seconds.len() - 1] - seconds[0]) / middle,
        "tflops": shape.flops() / middle * 1e-12, "gbs": shape.bytes() / middle * 1e-9,
        "roofline": 0.0, "method": method,
        "first_s": first, "wall_ms": wall[wall.len() / 2] * 1e3,
    }))
}

fn product((a, b): &Operands) -> Tensor<3> {
    a.clone().matmul(b.clone())
}

/// Seconds by the device's own timestamps, from the first to the last pass of `work`.
fn by_device(device: &Device, work: impl FnOnce() + Send) -> Result<f64, String> {
    let ((), window) = device.profile(work).map_err(|error| error.to_string())?;
    if window.timing_method() != TimingMethod::Device {
        return Err("the device has no timestamps".into());
    }
    let ticks = pollster::block_on(window.resolve()).ok_or("nothing ran in the profiled window")?;
    Ok(ticks.duration().as_secs_f64())
}

/// Compares elements spread over the output, the corners among them, with sums in f64. The bound is
/// the one of the benches: a sum of K products in f32, and one rounding.
fn check((a, b): &Operands, c: Tensor<3>, shape: &Shape) -> Result<(), String> {
    let [m, n, k] = shape.mnk;
    let host =
        |tensor: Tensor<3>| tensor.try_into_vec_as::<f32>().map_err(|error| error.to_string());
    let (a, b, c) = (host(a.clone())?, host(b.clone())?, host(c)?);
    for i in 0..CHECKED {
        let at = i * (shape.batch - 1) / (CHECKED - 1);
        let (row, column) =
            (i * (m - 1) / (CHECKED - 1), (i * 37 % CHECKED) * (n - 1) / (CHECKED - 1));
        let terms = (0..k).map(|i| {
            f64::from(a[(at * m + row) * k + i]) * f64::from(b[(at * k + i) * n + column])
        });
        let (sum, size) =
            terms.fold((0.0, 0.0), |(sum, size), term| (sum + term, size + f64::abs(term)));
        let got = f64::from(c[(at * m + row) * n + column]);
        let gamma = (k as f64).min(8.0 * (k as f64).sqrt()) * f64::from(f32::EPSILON);
        let bound = gamma * size + shape.roundoff * sum.abs() + 1e-30;
        let error = (got - sum).abs();
        if error.is_nan() || error > bound {
            return Err(format!(
                "C[{at},{row},{column}] is {got}, expected {sum} within {bound:e}"
            ));
        }
    }
    Ok(())
}
