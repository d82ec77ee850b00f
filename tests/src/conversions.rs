//! Cases of taking and quantizing: their operands, and the results that they must have. They run in
//! the sanitizer (`planned`) and through the library's own calls (`devices`).

mod devices;
mod edges;
#[cfg(not(target_family = "wasm"))]
mod planned;
mod source;

pub use devices::{quantize, take};
use edges::{AFFINE_EDGES, MX_EDGES, Q8_0_EDGES, SCALES};
#[cfg(not(target_family = "wasm"))]
pub use planned::{pieces, planned};
pub use source::{Data, Memory, Source, places};
use std::collections::HashSet;
use tilewise_core::plan::{Index, Part, Pass, Quantize, Table, Take};
use tilewise_core::quant::{self, Stored};
use tilewise_core::{DType, Format, QuantFormat, convert};

/// A case of taking.
#[derive(Clone, Debug)]
pub struct Taking {
    /// The table.
    pub table: Source,
    /// The rows and columns to take; all if there is no index.
    pub indices: [Option<Vec<u32>>; 2],
    /// Type of the output.
    pub dtype: DType,
    /// Elements of the output's storage before it.
    pub lead: usize,
}

/// Unused words before each index, and between two of them.
pub const INDEX_STEP: usize = 2;

impl Taking {
    /// Takes all of a table.
    pub fn new(table: Source, dtype: DType) -> Self {
        Taking { table, indices: [None, None], dtype, lead: 0 }
    }

    /// Takes rows by index.
    pub fn rows(mut self, rows: &[u32]) -> Self {
        self.indices[0] = Some(rows.to_vec());
        self
    }

    /// Takes columns by index.
    pub fn columns(mut self, columns: &[u32]) -> Self {
        self.indices[1] = Some(columns.to_vec());
        self
    }

    /// Puts `lead` elements before the output in its storage.
    pub fn lead(self, lead: usize) -> Self {
        Taking { lead, ..self }
    }

    /// Entries, rows and columns of the output.
    pub fn shape(&self) -> [usize; 3] {
        let [entries, rows, columns] = self.table.shape;
        let count = |index: &Option<Vec<u32>>, all| index.as_ref().map_or(all, Vec::len);
        [entries, count(&self.indices[0], rows), count(&self.indices[1], columns)]
    }

    /// The words of an index, with poison between them.
    pub fn words(index: &[u32]) -> Vec<u32> {
        let mut words = vec![0xffff_fff0; INDEX_STEP * index.len() + 1];
        index.iter().enumerate().for_each(|(i, index)| words[1 + INDEX_STEP * i] = *index);
        words
    }

    /// The problem of the case.
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
            zeros: false,
            dtype: self.dtype,
            offset: self.lead as u64,
            len: elements as u64,
            beside_c: false,
        }
    }

    /// The number that stands for elements that are not in the table.
    pub fn beyond(&self) -> f32 {
        match self.dtype {
            DType::I32 => i32::MIN as f32,
            DType::U32 => u32::MAX as f32,
            DType::F32 | DType::F16 | DType::BF16 => f32::NAN,
        }
    }

    /// The output for `values`, the table's elements; `beyond` stands for elements that are not in
    /// the table.
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
    /// The problem of the case.
    pub fn problem(&self, weights: Table) -> Quantize {
        Quantize { weights, format: self.format, pitch: self.format.pitch(weights.columns) }
    }

    /// The bytes of the planes.
    ///
    /// # Errors
    /// The format does not hold the weights.
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

/// All dense types, and a quantized format of each kind, in which sources may be stored.
pub fn formats() -> Vec<Format> {
    let quantized = QuantFormat::kinds().into_iter().map(Format::Quantized);
    DType::FLOATS.map(Format::Dense).into_iter().chain(quantized).collect()
}

/// Formats that weights are quantized to on devices.
pub fn made_on_devices() -> Vec<QuantFormat> {
    let encoders = tilewise_shaders::CONVERSIONS.encoders;
    QuantFormat::all()
        .filter(|format| encoders.iter().any(|encoder| (encoder.serves)(*format)))
        .collect()
}

/// Whether numbers are the same; NaN equals NaN.
pub fn same_numbers(dtype: DType, a: &[u8], b: &[u8]) -> bool {
    let numbers = |bytes| convert::decode(dtype, bytes).expect("whole elements");
    let (a, b) = (numbers(a), numbers(b));
    a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| a == b || a.is_nan() && b.is_nan())
}

/// The cases that need only a few shaders. These shaders together have every file, and every value
/// of every constant.
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

/// Cases of taking: every format of a table and type of output, with odd places and sizes.
pub fn taking() -> Vec<Taking> {
    let mut cases = Vec::new();
    for dtype in [DType::I32, DType::U32] {
        let integers = Source::new(Format::Dense(dtype), [2, 5, 3], Data::Bits).inside(1);
        cases.push(Taking::new(integers, dtype).rows(&[4, 0, 5]).columns(&[2, 3, 0]).lead(1));
    }
    // The rows are whole blocks of 16 bytes.
    for dtype in DType::FLOATS.into_iter().chain([DType::U32]) {
        let blocks = Source::new(Format::Dense(dtype), [3, 5, 16], Data::Bits);
        cases.push(Taking::new(blocks, dtype).rows(&[4, 0, 5, 2, 2, 1, u32::MAX]).lead(8));
    }
    for (i, format) in formats().into_iter().enumerate() {
        let (data, block) = match format {
            Format::Dense(_) => (Data::Bits, 8),
            Format::Quantized(format) => (Data::Weights, format.block() as usize),
        };
        let source = |rows, blocks: usize| Source::new(format, [1, rows, blocks * block], data);
        for (j, dtype) in DType::FLOATS.into_iter().enumerate() {
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
                // The rows share words.
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
        let dtype = DType::FLOATS[i % 3];
        cases.push(Taking::new(source(1, 1), dtype));
        cases.push(Taking::new(source(3, 1), dtype).rows(&[]));
        cases.push(Taking::new(source(0, 1), dtype).rows(&[0, 3]));
        if let Format::Quantized(_) = format {
            let source = Source::new(format, [1, 5, SCALES.len() * block], Data::Scales);
            cases.push(Taking::new(source, dtype));
        }
        if format == Format::Quantized(QuantFormat::NVFP4) || format.is_of("scaled") {
            // Codes take every value, and so do scales of a byte, NaN among them.
            let source = Source::new(format, [1, 16, 512], Data::Bits);
            cases.push(Taking::new(source, dtype));
        }
        // The output takes more than one workgroup.
        cases.push(
            Taking::new(source(70, 2), dtype)
                .rows(&(0..69).map(|i| i * 13 % 71).collect::<Vec<_>>()),
        );
    }
    cases
}

/// Cases of quantizing. Every format meets types and directions of the weights by turns; one format
/// of each kind meets all of them.
pub fn quantizing() -> Vec<Quantizing> {
    let mut cases = Vec::new();
    let kinds = QuantFormat::kinds();
    for (i, format) in made_on_devices().into_iter().enumerate() {
        let block = format.block() as usize;
        let mut case = |weights: Source| cases.push(Quantizing { weights, format });
        // A power of two: every block of the format holds all numbers below it.
        let below = match (format.def().family, format.planes()[1].of) {
            ("affine", Stored::Numbers(DType::F16)) | ("gguf", _) => 12,
            ("mx", _) if format == QuantFormat::NVFP4 => 8,
            _ => 120,
        };
        let is_kind = kinds.contains(&format);
        for (j, dtype) in
            DType::FLOATS.into_iter().enumerate().filter(|(j, _)| is_kind || i % 3 == *j)
        {
            let dense = Format::Dense(dtype);
            let shape = [1 + (i + j) % 3, 3, 3 * block];
            case(Source::new(dense, shape, Data::Weights).inside(1));
            case(Source::new(dense, [2, 5, 2 * block], Data::Below(below)).inside(1).transposed());
        }
        case(Source::new(Format::Dense(DType::FLOATS[i % 3]), [1, 1, block], Data::Weights));
        if is_kind {
            let edges = match format.def().family {
                "mx" => MX_EDGES,
                "gguf" => Q8_0_EDGES,
                _ => AFFINE_EDGES,
            };
            for edge in edges.chunks(1) {
                case(Source::new(Format::Dense(DType::F32), [1, 1, block], Data::Rows(edge)));
            }
            case(Source::new(Format::Dense(DType::FLOATS[i % 3]), [2, 3, block], Data::Infinite));
            case(Source::new(Format::Dense(DType::F32), [1, 137, 2 * block], Data::Below(below)));
            case(Source::new(Format::Dense(DType::F32), [1, 70, block], Data::Below(127)));
            // The rows have gaps between them.
            let k = [1024, 2048].into_iter().find(|&k| format.pitch(k) > k);
            if let Some(k) = k {
                case(Source::new(Format::Dense(DType::F16), [2, 3, k as usize], Data::Weights));
            }
        }
    }
    cases
}
