//! Matrices to take from or to quantize, and their contents.

use super::edges::{E2M1_ENDS, SCALES, edges};
use crate::Rng;
use crate::generators::{poison, rescaled};
use tilewise_core::plan::Table;
use tilewise_core::quant::{self, Quantized, Stored};
use tilewise_core::{DType, Format, Operand, QuantFormat, convert};

/// Matrices inside larger ones.
#[derive(Clone, Debug)]
pub struct Source {
    /// How they are stored.
    pub format: Format,
    /// Entries, rows, columns.
    pub shape: [usize; 3],
    /// Rows, and columns or blocks of columns, between the edge of the storage and the matrices.
    pub margin: usize,
    /// Whether the transpose is stored.
    pub transposed: bool,
    /// Their contents.
    pub data: Data,
}

/// The contents of a source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Data {
    /// Any bits: NaN, infinities and subnormal numbers among them.
    Bits,
    /// Finite numbers of magnitudes that differ from block to block, zeros and equals among them.
    Weights,
    /// Like `Weights`, but all are below a power of two. They are as small as their type allows,
    /// subnormal too.
    Below(i32),
    /// Like `Weights`, but the second last number is infinite.
    Infinite,
    /// Random codes of a quantized format under odd scales (`edges.rs`), block after block.
    Scales,
    /// Rows that each begin with one of these pairs. The other numbers are the first of the pair
    /// times the ends of e2m1's ranges, as if the first were the largest code; and the numbers just
    /// after these.
    Rows(&'static [[f32; 2]]),
}

/// A source in memory.
pub struct Memory {
    /// The places of the matrices.
    pub table: Table,
    /// The bytes of each plane.
    pub planes: Vec<Vec<u8>>,
    /// The planes as one matrix for each entry, if the source is quantized.
    pub quantized: Vec<Quantized>,
    /// The elements, row-major.
    pub values: Vec<f32>,
}

impl Source {
    /// Matrices that fill their storage.
    pub fn new(format: Format, shape: [usize; 3], data: Data) -> Self {
        Source { format, shape, margin: 0, transposed: false, data }
    }

    /// Puts the matrices inside larger ones.
    pub fn inside(self, margin: usize) -> Self {
        Source { margin, ..self }
    }

    /// Stores the matrices as their transposes.
    pub fn transposed(self) -> Self {
        Source { transposed: true, ..self }
    }

    /// Entries, lines and elements of a line in storage.
    pub fn storage(&self) -> [usize; 3] {
        let [entries, rows, columns] = self.shape;
        let [lines, width] = if self.transposed { [columns, rows] } else { [rows, columns] };
        [entries, lines + 2 * self.margin, width + 2 * self.margin * self.format.block() as usize]
    }

    /// Fills the storage with random numbers.
    pub fn store(&self, rng: &mut Rng) -> Memory {
        let [entries, lines, width] = self.storage();
        let [_, rows, columns] = self.shape;
        let block = self.format.block() as usize;
        let operand = Operand {
            transposed: self.transposed,
            offset: (self.margin * (width + block)) as u64,
            ..Operand::packed(self.format, entries as u64, lines as u64, width as u64)
        };
        let table =
            Table { operand, entries: entries as u64, rows: rows as u64, columns: columns as u64 };
        let all = entries * lines * width;
        let dtype = self.format.element().unwrap_or(DType::F32);
        let numbers = match self.data {
            Data::Rows(pairs) => pairs.iter().flat_map(|pair| edges(*pair, width)).collect(),
            _ => numbers(self.data, dtype, all, rng),
        };
        let (planes, quantized, numbers) = match self.format {
            Format::Dense(dtype) => {
                let mut bytes = poison(dtype, all);
                let size = dtype.bytes() as usize;
                let encoded = convert::encode(dtype, &numbers);
                places(&table).for_each(|at| {
                    bytes[at * size..][..size].copy_from_slice(&encoded[at * size..][..size])
                });
                let numbers = convert::decode(dtype, &bytes).expect("whole elements");
                (vec![bytes], Vec::new(), numbers)
            }
            Format::Quantized(format) => {
                let mut matrix = |numbers: &[f32]| match format.quantizes() {
                    _ if self.data == Data::Bits => any_bits(format, lines, width, rng),
                    _ if self.data == Data::Scales => under_scales(format, lines, width, rng),
                    true => quant::quantize(numbers, lines, width, format).expect("weights fit"),
                    false => Quantized::sample(format, lines, width, || rng.bits() as u32)
                        .expect("whole blocks"),
                };
                let quantized: Vec<_> = match lines * width {
                    0 => (0..entries).map(|_| matrix(&[])).collect(),
                    size => numbers.chunks(size).map(&mut matrix).collect(),
                };
                let plane = |i: usize| {
                    quantized.iter().flat_map(|matrix| matrix.planes()[i].clone()).collect()
                };
                let planes = (0..format.planes().len()).map(plane).collect();
                let numbers = quantized.iter().flat_map(quant::dequantize).collect();
                (planes, quantized, numbers)
            }
        };
        let values = places(&table).map(|at| numbers[at]).collect();
        Memory { table, planes, quantized, values }
    }
}

/// The places of the elements, row-major over entries, rows and columns.
pub fn places(table: &Table) -> impl Iterator<Item = usize> + use<> {
    let Table {
        operand: Operand { transposed, offset, ld, batch_stride, .. },
        entries,
        rows,
        columns,
    } = *table;
    let element = move |entry: u64, row: u64, column: u64| {
        let inner = if transposed { column * ld + row } else { row * ld + column };
        (offset + entry * batch_stride + inner) as usize
    };
    let rows = (0..entries).flat_map(move |entry| (0..rows).map(move |row| (entry, row)));
    rows.flat_map(move |(entry, row)| (0..columns).map(move |column| element(entry, row, column)))
}

/// A matrix of a format in which every bit is random. Scales of f32, which may then be subnormal,
/// are [`SCALES`].
fn any_bits(format: QuantFormat, n: usize, k: usize, rng: &mut Rng) -> Quantized {
    let sizes = format.sizes(n, k).expect("whole blocks");
    let planes =
        sizes.into_iter().map(|size| (0..size).map(|_| rng.bits() as u8).collect()).collect();
    let any = Quantized::from_planes(format, n, k, planes).expect("planes of the right sizes");
    let is_f32 = format.planes()[1].of == Stored::Numbers(DType::F32);
    rescaled(&any, |i| is_f32.then_some(SCALES[i % SCALES.len()]))
}

/// A matrix of random codes under [`SCALES`].
fn under_scales(format: QuantFormat, n: usize, k: usize, rng: &mut Rng) -> Quantized {
    let sampled = Quantized::sample(format, n, k, || rng.bits() as u32).expect("whole blocks");
    // An exponent has no zero, and kernels take the two smallest exponents for zero.
    let is_exponent = format.planes().iter().any(|plane| plane.bytes == 1);
    rescaled(&sampled, |i| match SCALES[i % SCALES.len()] {
        [0.0, _] if is_exponent => None,
        numbers => Some(numbers),
    })
}

fn numbers(data: Data, dtype: DType, count: usize, rng: &mut Rng) -> Vec<f32> {
    if data == Data::Bits {
        let bytes: Vec<u8> =
            (0..count * dtype.bytes() as usize).map(|_| rng.bits() as u8).collect();
        return convert::decode(dtype, &bytes).expect("whole elements");
    }
    // Blocks of every format are made of runs of 16 numbers; each run has its own range.
    let (mut scale, mut kind) = (1.0, 0);
    let mut numbers: Vec<f32> = (0..count)
        .map(|i| {
            if i % 16 == 0 {
                kind = rng.below(9);
                let exponent = match data {
                    Data::Below(exponent) if i % 32 == 0 => {
                        rng.below((exponent + 149) as usize) as i32 - 149
                    }
                    Data::Below(exponent) => rng.below(30) as i32 - 30 + exponent.min(10),
                    _ => rng.below(12) as i32 - 6,
                };
                scale = 2f32.powi(exponent.clamp(-126, 120)) * 2f32.powi((exponent + 126).min(0));
            }
            match (kind, rng.below(8)) {
                // Numbers of one sign; a constant; zeros; numbers of few digits, which have ties;
                // else any.
                (0, _) => rng.number().abs() * scale,
                (1, _) => scale,
                (2, _) => 0.0 * rng.number(),
                (3, _) => rng.below(25) as f32 * 0.25 * scale,
                (4, _) => (rng.below(33) as f32 - 16.0) * 0.5 * scale,
                // The ends of e2m1's ranges, and their neighbours.
                (5, 0) => 6.0 * scale,
                (5, _) => {
                    let end = rng.pick(&E2M1_ENDS);
                    f32::from_bits(end.to_bits() - 1 + rng.below(3) as u32) * scale
                }
                (_, 0) => -0.0,
                _ => rng.number() * scale,
            }
        })
        .collect();
    for number in &mut numbers {
        *number = convert::round(dtype, *number);
        if !number.is_finite() {
            *number = 1.0;
        }
    }
    if data == Data::Infinite {
        numbers[count - 2] = f32::INFINITY;
    }
    numbers
}
