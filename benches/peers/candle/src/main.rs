//! Times products on the CPU with candle: squares in f32 and f16, and one row by quantized weights.

use candle_core::quantized::{GgmlDType, QMatMul, QTensor};
use candle_core::{DType, Device, Module, Result, Tensor};
use std::hint::black_box;
use std::time::Instant;

const SAMPLES: usize = 15;

fn main() -> Result<()> {
    let random = |shape: (usize, usize)| Tensor::randn(0f32, 1f32, shape, &Device::Cpu);
    for size in [256, 512, 1024, 2048] {
        for dtype in [DType::F32, DType::F16] {
            let [a, b] = [random((size, size))?, random((size, size))?];
            let (a, b) = (a.to_dtype(dtype)?, b.to_dtype(dtype)?);
            let ms = median(|| a.matmul(&b))?;
            let rate = 2e-6 * (size as f64).powi(3) / ms;
            println!("{size}x{size}x{size} {dtype:?}: {ms:.2} ms, {rate:.0} GFLOP/s");
        }
    }
    let (row, weights) = (random((1, 4096))?, random((4096, 4096))?);
    for dtype in [GgmlDType::Q4K, GgmlDType::Q6K, GgmlDType::Q8_0] {
        let weights = QMatMul::from_qtensor(QTensor::quantize(&weights, dtype)?)?;
        println!("1x4096x4096 {dtype:?}: {:.2} ms", median(|| weights.forward(&row))?);
    }
    Ok(())
}

/// The median of several calls in ms, after one that is not timed.
fn median(call: impl Fn() -> Result<Tensor>) -> Result<f64> {
    let mut times = Vec::new();
    for _ in 0..=SAMPLES {
        let start = Instant::now();
        black_box(call()?);
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    times.remove(0);
    times.sort_by(f64::total_cmp);
    Ok(times[SAMPLES / 2])
}
