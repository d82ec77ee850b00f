//! Contents of operands: deterministic, so that a failure can be repeated.

use tilewise_core::quant::Quantized;
use tilewise_core::{DType, convert};

/// SplitMix64 (G. L. Steele, D. Lea, C. H. Flood, "Fast splittable pseudorandom number generators",
/// OOPSLA 2014).
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// A generator; equal seeds give equal sequences.
    pub fn new(seed: u64) -> Self {
        Rng(seed)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`, which is not 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.bits() % end as u64) as usize
    }

    /// One of `items`, which are not none.
    pub fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }

    /// Uniform in ±\[1/64, 1\]: never zero, so that an element that is left out shows.
    pub fn number(&mut self) -> f32 {
        let magnitude =
            1.0 / 64.0 + (self.bits() >> 40) as f32 / (1u32 << 24) as f32 * (63.0 / 64.0);
        if self.bits().is_multiple_of(2) { magnitude } else { -magnitude }
    }

    /// A permutation of `0..n`.
    pub fn permutation(&mut self, n: usize) -> Vec<usize> {
        let mut order: Vec<_> = (0..n).collect();
        for i in (1..n).rev() {
            order.swap(i, self.below(i + 1));
        }
        order
    }
}

/// The contents of an operand.
#[derive(Clone, PartialEq)]
pub enum Data {
    /// Uniform numbers in ±\[1/64, 1\], rounded to the operand's type.
    Random,
    /// ±1 and ±2: sums of products are small integers, which every type and order of summation
    /// holds exactly; f16 those of 512 products and fewer.
    Integers,
    /// 1 on the diagonal, 0 elsewhere.
    Identity,
    /// Numbers that somebody else chose, row-major over entries, rows and columns.
    Given(Vec<f32>),
}

impl std::fmt::Debug for Data {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Data::Random => "Random",
            Data::Integers => "Integers",
            Data::Identity => "Identity",
            // They may be thousands.
            Data::Given(values) => return write!(f, "{} numbers", values.len()),
        })
    }
}

impl Data {
    /// `entries` matrices of `rows`×`cols`, row-major, rounded to `dtype`.
    pub fn generate(
        &self,
        dtype: DType,
        entries: usize,
        [rows, cols]: [usize; 2],
        rng: &mut Rng,
    ) -> Vec<f32> {
        let count = entries * rows * cols;
        match self {
            Data::Random => (0..count).map(|_| convert::round(dtype, rng.number())).collect(),
            Data::Integers => (0..count).map(|_| rng.pick(&[-2.0, -1.0, 1.0, 2.0])).collect(),
            Data::Identity => {
                (0..count).map(|i| if i / cols % rows == i % cols { 1.0 } else { 0.0 }).collect()
            }
            Data::Given(values) => {
                assert_eq!(values.len(), count, "{entries}×{rows}×{cols} values");
                values.clone()
            }
        }
    }
}

/// Bytes that are NaN in `dtype`, each element another: guard bands and outputs before the product.
pub fn poison(dtype: DType, elements: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(elements * dtype.bytes() as usize);
    for i in 0..elements as u32 {
        let low = i.wrapping_mul(0x9e37_79b1) >> 16;
        match dtype {
            DType::F32 | DType::I32 | DType::U32 => bytes.extend((0x7fc0_0000 | low).to_le_bytes()),
            DType::F16 => bytes.extend((0x7e00 | (low as u16 & 0xff)).to_le_bytes()),
            DType::BF16 => bytes.extend((0x7fc0 | (low as u16 & 0x3f)).to_le_bytes()),
        }
    }
    bytes
}

/// A matrix with other scales in some of its blocks: `numbers` gives a block's scale and its second
/// number.
pub fn rescaled(matrix: &Quantized, numbers: impl Fn(usize) -> Option<[f32; 2]>) -> Quantized {
    let format = matrix.format();
    let blocks = matrix.n() * matrix.k() / format.block() as usize;
    let planes = format.encode_blocks(blocks, |i, block| {
        for ((part, plane), bytes) in block.iter_mut().zip(format.planes()).zip(matrix.planes()) {
            part.copy_from_slice(&bytes[i * plane.bytes as usize..][..plane.bytes as usize]);
        }
        if let Some(numbers) = numbers(i) {
            format.def().codec.rescale(numbers, block);
        }
        Ok(())
    });
    let planes = planes.expect("every block is stored");
    Quantized::from_planes(format, matrix.n(), matrix.k(), planes)
        .expect("planes of the same sizes")
}
