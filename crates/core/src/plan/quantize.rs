//! Quantizing dense weights on the device, to the bits that [`quant::quantize`] gives. An
//! invocation makes as many blocks as fill whole words of every plane.
//!
//! [`quant::quantize`]: crate::quant::quantize()

use super::Pass;
use super::builder::Builder;
use super::piece::Window;
use super::table::{Table, workgroups};
use super::take::{bound, source_bits};
use crate::caps::Caps;
use crate::error::{Error, Result};
use crate::kernel::{Conversions, EncoderDef};
use crate::params::Params;
use crate::problem::{Format, Grouping};
use crate::quant::QuantFormat;
use crate::role::Role;
use std::ops::Range;

/// Invocations of a workgroup, at most.
const THREADS: u32 = 64;

/// Bytes of a word. No two invocations write the same word.
const WORD: u64 = 4;

/// Blocks that take a multiple of every device's alignment of bindings, in each plane.
const GRANULE: u64 = 256;

/// Dense weights \[entries, rows, columns\] and the format that they get, in planes that hold
/// nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Quantize {
    /// The weights.
    pub weights: Table,
    /// The format.
    pub format: QuantFormat,
    /// Weights from one row of the output to the next: whole blocks, no fewer than its columns.
    pub pitch: u64,
}

impl Quantize {
    /// The quantized weights.
    pub fn output(&self) -> Table {
        let Table { entries, rows, columns, .. } = self.weights;
        let format = Format::Quantized(self.format);
        Table { columns, ..Table::packed(format, entries, rows, self.pitch) }
    }

    /// This quantization, with strides that play no part set to 0.
    ///
    /// # Errors
    /// [`Shape`](crate::Error), `Unsupported` if no device can quantize the weights.
    pub fn checked(&self) -> Result<Self> {
        let Quantize { weights, format, pitch } = *self;
        let (columns, block) = (weights.columns, format.block());
        if !columns.is_multiple_of(block) {
            return Err(Error::Shape(format!(
                "K = {columns} is not a multiple of {block}, the block of {format}"
            )));
        }
        if pitch < columns || !pitch.is_multiple_of(block) {
            return Err(Error::Shape(format!(
                "rows of {columns} weights cannot begin {pitch} weights apart"
            )));
        }
        if let Format::Quantized(other) = weights.operand.format {
            return Err(Error::Unsupported(format!(
                "the weights are {other} already; f32, f16 or bf16 is wanted"
            )));
        }
        if weights.operand.format.element().is_some_and(|dtype| !dtype.is_float()) {
            let format = weights.operand.format;
            return Err(Error::Unsupported(format!(
                "the weights are {format}; f32, f16 or bf16 is wanted"
            )));
        }
        let weights = weights.checked("the weights")?;
        weights
            .elements()
            .ok_or_else(|| Error::Shape("overflow: weights of 2^64 elements".into()))?;
        Ok(Quantize { weights, format, pitch })
    }
}

/// The passes that quantize. A row whose weights cannot be stored leaves its number plus 1 in
/// `Role::Status`, counted over all entries; the last such row wins.
///
/// # Errors
/// The errors of [`Quantize::checked`]; [`Unsupported`](crate::Error) for a format that no device
/// makes; `DeviceLimit` if the weights do not fit a binding and cannot be cut, or the device binds
/// too few storage buffers.
pub fn quantize(quantize: &Quantize, caps: &Caps, tools: &Conversions) -> Result<Vec<Pass>> {
    let quantize = quantize.checked()?;
    let encoder = tools.encoders.iter().find(|encoder| (encoder.serves)(quantize.format));
    let encoder = encoder.ok_or_else(|| {
        let format = quantize.format;
        Error::Unsupported(format!(
            "quantizing to {format} on the device; on the host there is QuantizedTensor::quantize"
        ))
    })?;
    let mut passes = Vec::new();
    if quantize.weights.elements() != Some(0) {
        let output = Table { columns: quantize.pitch, ..quantize.output() };
        let piece = Piece { weights: quantize.weights, output, first: 0 };
        cut(piece, caps, &mut |piece| {
            passes.push(pass(piece, encoder, quantize.format, caps, tools)?);
            Ok(())
        })?;
    }
    bound(&passes, caps)?;
    Ok(passes)
}

/// Some of the weights, and the rows before them.
#[derive(Clone, Copy)]
struct Piece {
    weights: Table,
    /// The output, with the gaps behind rows, which are stored too.
    output: Table,
    first: u64,
}

impl Piece {
    /// Two halves, if bindings of their planes can begin at the second.
    fn halves(&self) -> Option<[Piece; 2]> {
        let Piece { weights, output, first } = *self;
        let Table { entries, rows, .. } = weights;
        // The second half begins at a multiple of GRANULE blocks.
        let (whole, each, step) = if entries > 1 {
            let blocks = rows * (output.columns / output.operand.format.block());
            (entries, rows, GRANULE >> blocks.trailing_zeros().min(GRANULE.trailing_zeros()))
        } else {
            (rows, 1, GRANULE)
        };
        let half = (whole / 2).next_multiple_of(step);
        let of = |table: Table, range| match entries {
            ..=1 => table.rows_in(range),
            _ => table.entries_in(range),
        };
        let piece = |range: Range<u64>| Piece {
            weights: of(weights, range.clone()),
            output: of(output, range.clone()),
            first: first + range.start * each,
        };
        (half < whole).then(|| [piece(0..half), piece(half..whole)])
    }
}

/// Calls `each` with pieces that fit the device's bindings, in their order.
fn cut(piece: Piece, caps: &Caps, each: &mut impl FnMut(&Piece) -> Result<()>) -> Result<()> {
    let excess = piece.weights.excess("the weights", caps);
    let excess = excess.or_else(|| piece.output.excess("the quantized weights", caps));
    let Some(error) = excess else { return each(&piece) };
    piece.halves().ok_or(error)?.into_iter().try_for_each(|half| cut(half, caps, each))
}

fn pass(
    piece: &Piece,
    encoder: &EncoderDef,
    format: QuantFormat,
    caps: &Caps,
    tools: &Conversions,
) -> Result<Pass> {
    let Piece { weights, output, first } = *piece;
    let Table { entries, rows, columns, .. } = weights;
    let (source, operand) = weights.bound(caps);
    let (target, _) = output.bound(caps);
    let mut windows = [Window::default(); Role::COUNT];
    (windows[Role::A as usize], windows[Role::B as usize]) = (source, target);
    let planes = format.planes();
    let number_bytes = planes[encoder.numbers[0]].bytes;
    let blocks = WORD / number_bytes;
    let invocations = (entries * rows * output.columns / format.block()).div_ceil(blocks);
    let threads = THREADS.min(caps.max_threads());
    let workgroups = workgroups(invocations, threads, caps)?;
    let params = Params {
        m: rows as u32,
        k: columns as u32,
        entries: entries as u32,
        a_offset: operand.offset as u32,
        a_ld: operand.ld as u32,
        a_batch: operand.batch_stride as u32,
        b_ld: output.columns as u32,
        shares: invocations as u32,
        first_row: first as u32,
        ..Params::default()
    };
    let mut builder =
        Builder::new(format!("quantize {format}"), params, threads, 0, (tools.kit, windows));
    source_bits(&mut builder, "a", Role::A, &operand, tools, caps)?;
    builder.axes("a", !operand.transposed);
    builder.bases(Grouping::Batched);
    builder.part(encoder.file, None, (encoder.constants)(format));
    builder.part(
        tools.quantize,
        None,
        vec![
            ("THREADS", threads),
            ("BLOCK", format.block() as u32),
            ("BITS", (planes[encoder.codes].bytes * 8 / format.block()) as u32),
            ("BLOCKS", blocks as u32),
            ("CODES", Role::B_PLANES[encoder.codes].binding()),
            ("NUMBERS", Role::B_PLANES[encoder.numbers[0]].binding()),
        ],
    );
    for (role, plane) in Role::B.planes().zip(planes) {
        let [start, bytes] = builder.window(Role::B, Format::Quantized(format), plane);
        builder.bind(role, true, [start, bytes], WORD);
    }
    builder.bind(Role::Status, true, [0, WORD], WORD);
    Ok(builder.finish(None, workgroups, caps))
}
