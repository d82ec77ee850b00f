//! Cases of taking and quantizing: what their operands hold, and what must come of them. They run
//! in the sanitizer ([`crate::sanitized`]) and through the library's own calls.

mod edges;

use crate::Rng;
use crate::generators::{poison, rescaled};
use crate::sanitized::Conversion;
use edges::{AFFINE_EDGES, E2M1_ENDS, MX_EDGES, Q8_0_EDGES, SCALES, edges};
use std::collections::HashSet;
use tilewise_core::plan::{Index, Part, Pass, Quantize, Table, Take};
use tilewise_core::quant::{self, Quantized, Stored};
use tilewise_core::{Caps, DType, Format, Operand, QuantFormat, convert};

/// Matrices inside larger ones.
#[derive(Clone, Debug)]
pub struct Source {
    /// How they are stored.
    pub format: Format,
    /// Entries, rows, columns.
    pub shape: [usize; 3],
    /// Rows, and columns or blocks of them, between the edge of what is stored and what is meant.
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
    /// As `Weights`, below a power of two and as small as their type allows, subnormal too.
    Below(i32),
    /// As `Weights`, the last but one infinite.
    Infinite,
    /// Random codes of a quantized format under odd scales (`edges.rs`), block after block.
    Scales,
    /// Rows that each begin with such a pair. What follows is the first times the ends of e2m1's
    /// ranges, as if it were the largest code, and the numbers after these.
    Rows(&'static [[f32; 2]]),
}

/// A source in memory.
pub struct Memory {
    /// Where the matrices lie.
    pub table: Table,
    /// The bytes of each plane.
    pub planes: Vec<Vec<u8>>,
    /// Those planes, a matrix each, where the source is quantized.
    pub quantized: Vec<Quantized>,
    /// The elements, row-major.
    pub values: Vec<f32>,
}

impl Source {
    /// Matrices that fill their storage.
    pub fn new(format: Format, shape: [usize; 3], data: Data) -> Self {
        Source { format, shape, margin: 0, transposed: false, data }
    }

    /// The same inside larger matrices.
    pub fn inside(self, margin: usize) -> Self {
        Source { margin, ..self }
    }

    /// The same stored as the transpose.
    pub fn transposed(self) -> Self {
        Source { transposed: true, ..self }
    }

    /// Entries, lines and elements of a line in storage.
    pub fn storage(&self) -> [usize; 3] {
        let [entries, rows, columns] = self.shape;
        let [lines, width] = if self.transposed { [columns, rows] } else { [rows, columns] };
        [entries, lines + 2 * self.margin, width + 2 * self.margin * self.format.block() as usize]
    }

    /// Fills it.
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

/// Places of the elements, row-major over entries, rows and columns.
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

/// A matrix of a format of which every bit is random.
fn any_bits(format: QuantFormat, n: usize, k: usize, rng: &mut Rng) -> Quantized {
    let sizes = format.sizes(n, k).expect("whole blocks");
    let planes =
        sizes.into_iter().map(|size| (0..size).map(|_| rng.bits() as u8).collect()).collect();
    Quantized::from_planes(format, n, k, planes).expect("planes of the right sizes")
}

/// A matrix of random codes under [`SCALES`].
fn under_scales(format: QuantFormat, n: usize, k: usize, rng: &mut Rng) -> Quantized {
    let sampled = Quantized::sample(format, n, k, || rng.bits() as u32).expect("whole blocks");
    // An exponent has no zero. Kernels take the two smallest of them for zero.
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
    // Blocks of every format lie in runs of 16; each has its own range.
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
                // One sign only; a constant; zeros; few digits, so that there are ties; otherwise
                // anything.
                (0, _) => rng.unit().abs() * scale,
                (1, _) => scale,
                (2, _) => 0.0 * rng.unit(),
                (3, _) => rng.below(25) as f32 * 0.25 * scale,
                (4, _) => (rng.below(33) as f32 - 16.0) * 0.5 * scale,
                // The ends of e2m1's ranges and their neighbours.
                (5, 0) => 6.0 * scale,
                (5, _) => {
                    let end = rng.pick(&E2M1_ENDS);
                    f32::from_bits(end.to_bits() - 1 + rng.below(3) as u32) * scale
                }
                (_, 0) => -0.0,
                _ => rng.unit() * scale,
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

/// A case of taking.
#[derive(Clone, Debug)]
pub struct Taking {
    /// The table.
    pub table: Source,
    /// Which rows and columns.
    pub indices: [Option<Vec<u32>>; 2],
    /// Type of the output.
    pub dtype: DType,
    /// Elements of the output's storage before it.
    pub lead: usize,
}

/// Unused words before each index, and between two of them.
pub const INDEX_STEP: usize = 2;

impl Taking {
    /// All of a table.
    pub fn new(table: Source, dtype: DType) -> Self {
        Taking { table, indices: [None, None], dtype, lead: 0 }
    }

    /// Rows by index.
    pub fn rows(mut self, rows: &[u32]) -> Self {
        self.indices[0] = Some(rows.to_vec());
        self
    }

    /// Columns by index.
    pub fn columns(mut self, columns: &[u32]) -> Self {
        self.indices[1] = Some(columns.to_vec());
        self
    }

    /// An output that begins elsewhere in its storage.
    pub fn lead(self, lead: usize) -> Self {
        Taking { lead, ..self }
    }

    /// Entries, rows and columns of the output.
    pub fn shape(&self) -> [usize; 3] {
        let [entries, rows, columns] = self.table.shape;
        let count = |index: &Option<Vec<u32>>, all| index.as_ref().map_or(all, Vec::len);
        [entries, count(&self.indices[0], rows), count(&self.indices[1], columns)]
    }

    /// The words of an index, poison between them.
    pub fn words(index: &[u32]) -> Vec<u32> {
        let mut words = vec![0xffff_fff0; INDEX_STEP * index.len() + 1];
        index.iter().enumerate().for_each(|(i, index)| words[1 + INDEX_STEP * i] = *index);
        words
    }

    /// The problem.
    pub fn problem(&self, table: Table) -> Take {
        let index = |index: &Option<Vec<u32>>| {
            let count = index.as_ref()?.len() as u64;
            let step = INDEX_STEP as u64;
            Some(Index { offset: 1, step, count, len: step * count + 1 })
        };
        let elements = self.shape().iter().product::<usize>() + self.lead;
        Take {
            table,
            rows: index(&self.indices[0]),
            columns: index(&self.indices[1]),
            dtype: self.dtype,
            offset: self.lead as u64,
            len: elements as u64,
        }
    }

    /// The output of `values`, the table's; `beyond` stands for elements that are not in the table.
    pub fn expected<T: Copy>(&self, values: &[T], beyond: T) -> Vec<T> {
        let [entries, rows, columns] = self.table.shape;
        let every = |index: &Option<Vec<u32>>, all: usize| {
            index
                .clone()
                .unwrap_or_else(|| (0..all as u32).collect())
                .into_iter()
                .map(|index| index as usize)
        };
        let mut out = Vec::new();
        for entry in 0..entries {
            for row in every(&self.indices[0], rows) {
                for column in every(&self.indices[1], columns) {
                    let inside = row < rows && column < columns;
                    out.push(if inside {
                        values[(entry * rows + row) * columns + column]
                    } else {
                        beyond
                    });
                }
            }
        }
        out
    }
}

/// A case of quantizing.
#[derive(Clone, Debug)]
pub struct Quantizing {
    /// The weights.
    pub weights: Source,
    /// The format.
    pub format: QuantFormat,
}

impl Quantizing {
    /// The problem.
    pub fn problem(&self, weights: Table) -> Quantize {
        Quantize { weights, format: self.format }
    }

    /// The bytes of the planes.
    ///
    /// # Errors
    /// When the format does not hold the weights.
    pub fn expected(&self, values: &[f32]) -> tilewise_core::Result<Vec<Vec<u8>>> {
        let [_, rows, columns] = self.weights.shape;
        let matrices = values
            .chunks(rows * columns)
            .map(|values| quant::quantize(values, rows, columns, self.format));
        let matrices = matrices.collect::<tilewise_core::Result<Vec<_>>>()?;
        let plane =
            |i: usize| matrices.iter().flat_map(|matrix| matrix.planes()[i].clone()).collect();
        Ok((0..self.format.planes().len()).map(plane).collect())
    }
}

/// Formats of one kind, with which sources may be stored.
pub fn formats() -> Vec<Format> {
    let quantized = QuantFormat::kinds().into_iter().map(Format::Quantized);
    DType::ALL.map(Format::Dense).into_iter().chain(quantized).collect()
}

/// Formats that weights are quantized to on devices.
pub fn made_on_devices() -> Vec<QuantFormat> {
    let encoders = tilewise_shaders::CONVERSIONS.encoders;
    QuantFormat::all()
        .filter(|format| encoders.iter().any(|encoder| (encoder.serves)(*format)))
        .collect()
}

/// Cases with the plans of a device, of formats one of each kind; those of a device with small
/// bindings, too.
///
/// # Errors
/// The planner's.
pub fn planned(caps: &Caps) -> tilewise_core::Result<Vec<Conversion>> {
    let taking = taking().into_iter().map(|case| Conversion::taking(&case, caps));
    let kinds = QuantFormat::kinds();
    // And the longest blocks.
    let is_wanted =
        |format: &QuantFormat| kinds.contains(format) || format.planes()[0].bytes >= 128;
    let quantizing = quantizing().into_iter().filter(|case| is_wanted(&case.format));
    let quantizing = quantizing.map(|case| Conversion::quantizing(&case, caps));
    taking.chain(quantizing).chain(pieces()).collect()
}

/// Cases that are cut, as a device with small bindings wants it.
pub fn pieces() -> Vec<tilewise_core::Result<Conversion>> {
    let caps = Caps { max_binding_bytes: 4096, storage_alignment: 32, ..Caps::webgpu_default() };
    let affine = Format::Quantized(QuantFormat::affine(8, 32, DType::F16).expect("it exists"));
    let f16 = Format::Dense(DType::F16);
    let rows: Vec<u32> = (0..61).map(|i| i * 29 % 67).collect();
    let taking = [
        Taking::new(Source::new(affine, [3, 66, 96], Data::Weights), DType::BF16).lead(5),
        Taking::new(Source::new(affine, [1, 66, 96], Data::Weights), DType::F32).rows(&rows),
        Taking::new(Source::new(f16, [3, 65, 67], Data::Bits), DType::F16).rows(&rows).lead(1),
        Taking::new(Source::new(f16, [1, 65, 67], Data::Bits), DType::F16)
            .rows(&rows)
            .columns(&rows),
    ];
    let quantizing = [
        Quantizing {
            weights: Source::new(f16, [2, 256, 32], Data::Weights),
            format: QuantFormat::MXFP4,
        },
        Quantizing {
            weights: Source::new(f16, [1, 600, 32], Data::Weights),
            format: QuantFormat::MXFP4,
        },
    ];
    let quantizing_caps = Caps { max_binding_bytes: 16 << 10, ..caps.clone() };
    let taking = taking.iter().map(|case| Conversion::taking(case, &caps));
    taking
        .chain(quantizing.iter().map(|case| Conversion::quantizing(case, &quantizing_caps)))
        .collect()
}

/// The cases that a few shaders run. Together these shaders have every file and every value of
/// every constant.
pub fn few_texts<T>(cases: Vec<T>, passes: impl Fn(&T) -> Vec<Pass>) -> Vec<T> {
    let texts = |case: &T| passes(case).into_iter().map(|pass| pass.parts).collect::<HashSet<_>>();
    let values = |texts: &HashSet<Vec<Part>>| {
        let parts = texts.iter().flatten();
        let files = parts.clone().map(|part| (part.file, part.operand, None));
        let of = |part: &Part| {
            let (file, operand) = (part.file, part.operand);
            part.constants
                .iter()
                .map(|constant| (file, operand, Some(*constant)))
                .collect::<Vec<_>>()
        };
        files.chain(parts.flat_map(of)).collect::<HashSet<_>>()
    };
    let all: Vec<_> = cases.iter().map(texts).collect();
    let (mut chosen, mut met) = (HashSet::new(), HashSet::new());
    loop {
        let new = |texts: &&HashSet<Vec<Part>>| values(texts).difference(&met).count();
        match all.iter().max_by_key(new).filter(|texts| new(texts) > 0) {
            Some(texts) => {
                met.extend(values(texts));
                chosen.extend(texts.iter().cloned());
            }
            None => break,
        }
    }
    let cases = cases.into_iter().zip(all).filter(|(_, texts)| texts.is_subset(&chosen));
    cases.map(|(case, _)| case).collect()
}

/// Cases of taking: every format of a table and type of output, odd places and sizes.
pub fn taking() -> Vec<Taking> {
    let mut cases = Vec::new();
    for (i, format) in formats().into_iter().enumerate() {
        let (data, block) = match format {
            Format::Dense(_) => (Data::Bits, 8),
            Format::Quantized(format) => (Data::Weights, format.block() as usize),
        };
        let source = |rows, blocks: usize| Source::new(format, [1, rows, blocks * block], data);
        for (j, dtype) in DType::ALL.into_iter().enumerate() {
            let shape = [2 + (i + j) % 2, 5, 2 * block];
            let entries = Source::new(format, shape, data).inside(1);
            cases.push(Taking::new(entries.clone(), dtype));
            cases.push(Taking::new(entries.clone(), dtype).rows(&[4, 0, 5, 2, 2]).lead(4));
            cases.push(
                Taking::new(entries, dtype)
                    .columns(&[7, 1, block as u32 + 3, 2 * block as u32, 0])
                    .lead(3),
            );
            if let Format::Dense(_) = format {
                // Rows share words.
                let odd = Source::new(format, [2, 3, 5], data);
                cases.push(Taking::new(odd.clone(), dtype).lead(1));
                cases.push(
                    Taking::new(odd.inside(1), dtype).rows(&[2, u32::MAX, 0]).columns(&[4, 1, 5]),
                );
                cases.push(
                    Taking::new(Source::new(format, [2, 7, 9], data).inside(2).transposed(), dtype)
                        .rows(&[6, 1]),
                );
            }
        }
        let dtype = DType::ALL[i % 3];
        cases.push(Taking::new(source(1, 1), dtype));
        cases.push(Taking::new(source(3, 1), dtype).rows(&[]));
        cases.push(Taking::new(source(0, 1), dtype).rows(&[0, 3]));
        if let Format::Quantized(_) = format {
            let source = Source::new(format, [1, 5, SCALES.len() * block], Data::Scales);
            cases.push(Taking::new(source, dtype));
        }
        if format == Format::Quantized(QuantFormat::NVFP4) {
            // Every scale, NaN among them.
            cases.push(Taking::new(Source::new(format, [1, 16, 32 * block], Data::Bits), dtype));
        }
        // More than one workgroup.
        cases.push(
            Taking::new(source(70, 2), dtype)
                .rows(&(0..69).map(|i| i * 13 % 71).collect::<Vec<_>>()),
        );
    }
    cases
}

/// Cases of quantizing: every format, types and directions of the weights in turns; one format of
/// each kind in all of them.
pub fn quantizing() -> Vec<Quantizing> {
    let mut cases = Vec::new();
    let kinds = QuantFormat::kinds();
    for (i, format) in made_on_devices().into_iter().enumerate() {
        let block = format.block() as usize;
        let mut case = |weights: Source| cases.push(Quantizing { weights, format });
        // What every block of the format holds.
        let below = match (format.def().family, format.planes()[1].of) {
            ("affine", Stored::Numbers(DType::F16)) | ("gguf", _) => 12,
            ("mx", _) if format == QuantFormat::NVFP4 => 8,
            _ => 120,
        };
        let is_kind = kinds.contains(&format);
        for (j, dtype) in DType::ALL.into_iter().enumerate().filter(|(j, _)| is_kind || i % 3 == *j)
        {
            let dense = Format::Dense(dtype);
            let shape = [1 + (i + j) % 3, 3, 3 * block];
            case(Source::new(dense, shape, Data::Weights).inside(1));
            case(Source::new(dense, [2, 5, 2 * block], Data::Below(below)).inside(1).transposed());
        }
        case(Source::new(Format::Dense(DType::ALL[i % 3]), [1, 1, block], Data::Weights));
        if is_kind {
            let edges = match format.def().family {
                "mx" => MX_EDGES,
                "gguf" => Q8_0_EDGES,
                _ => AFFINE_EDGES,
            };
            for edge in edges.chunks(1) {
                case(Source::new(Format::Dense(DType::F32), [1, 1, block], Data::Rows(edge)));
            }
            case(Source::new(Format::Dense(DType::ALL[i % 3]), [2, 3, block], Data::Infinite));
            case(Source::new(Format::Dense(DType::F32), [1, 137, 2 * block], Data::Below(below)));
            case(Source::new(Format::Dense(DType::F32), [1, 70, block], Data::Below(127)));
        }
    }
    cases
}
