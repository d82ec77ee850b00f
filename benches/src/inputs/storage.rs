//! Random data that repeats, for operands of any size.

use crate::random::Random;
use tilewise::{Context, DType, Error, QuantFormat, Result, Tensor, wgpu};
use tilewise_core::convert;
use tilewise_core::quant::{Quantized, dequantize};
use tilewise_oracle::{rounded_error, summed_error};

/// Words of random data. The number is prime, so it does not divide the stride of a matrix, and no
/// two rows are equal.
const BLOCK_WORDS: usize = 1_048_573;
/// Blocks of random quantized weights. The number is prime for the same reason.
const QUANTIZED_BLOCKS: usize = 16_381;

/// Storage for all sets of one operand: random data that repeats after a block.
#[derive(Debug)]
pub(super) struct Pool {
    pub(super) tensor: Tensor,
    pub(super) block: Vec<f32>,
}

impl Pool {
    pub(super) fn new(ctx: &Context, dtype: DType, elements: usize, seed: u64) -> Result<Self> {
        Self::behind(ctx, dtype, elements, seed, 0)
    }

    /// The part of a larger storage that follows `before` elements.
    pub(super) fn behind(
        ctx: &Context,
        dtype: DType,
        elements: usize,
        seed: u64,
        before: usize,
    ) -> Result<Self> {
        let period = BLOCK_WORDS * 4 / dtype.bytes() as usize;
        let mut bytes = convert::encode(dtype, &Random::new(seed).numbers(period));
        let block = convert::decode(dtype, &bytes)?;
        bytes.rotate_left(before % period * dtype.bytes() as usize);
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

    pub(super) fn view(
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
#[derive(Debug)]
pub(super) struct Weights {
    /// A matrix for each entry of B.
    pub(super) entries: Vec<Quantized>,
    pub(super) values: Values,
}

impl Weights {
    pub(super) fn new(
        format: QuantFormat,
        entries: usize,
        [n, k]: [usize; 2],
        activations: DType,
    ) -> Result<Self> {
        let period = QUANTIZED_BLOCKS * format.block() as usize;
        let mut words = Random::new(2).numbers(period).into_iter().cycle().map(f32::to_bits);
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
        let errors =
            [summed_error(&repeated), rounded_error(&repeated, &[activations, DType::F16])];
        let values = Values { numbers: dequantize(&repeated), errors: Some(errors) };
        Ok(Weights { entries: (0..entries).map(entry).collect::<Result<_>>()?, values })
    }
}

/// The numbers that the storage of B repeats.
#[derive(Debug)]
pub(super) struct Values {
    pub(super) numbers: Vec<f32>,
    /// How far a kernel's weights may be from the quantized weights. The first errors are for
    /// kernels that do not round weights. The second are for kernels that round them to the type of
    /// the activations or to f16, as kernels in MSL and on matrix units do.
    pub(super) errors: Option<[Vec<f64>; 2]>,
}

impl Pool {
    pub(super) fn serves(&self, dtype: DType, elements: usize) -> bool {
        self.tensor.dtype() == dtype && self.tensor.elem_count() >= elements
    }
}
