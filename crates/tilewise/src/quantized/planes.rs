//! Quantized weights from existing planes, in memory or in given buffers.

use crate::context::Context;
use crate::quantized::{QuantizedTensor, matrices, pitch, sizes};
use crate::tensor::spacing::Spacing;
use crate::tensor::storage::Storage;
use tilewise_core::quant::Quantized;
use tilewise_core::{Error, Format, Operand, QuantFormat, Result};

/// Where a plane of quantized weights lies ([`QuantFormat::planes`]).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum PlaneSource<'a> {
    /// The plane's bytes, to be copied to the device.
    Bytes(&'a [u8]),
    /// A buffer that holds the plane from a byte on. Nothing is copied, and scales in f32 are not
    /// [divided](QuantizedTensor::upload). The buffer must have the usage `STORAGE`. If
    /// [`QuantFormat::pitch`] is more than K, products of many rows are up to
    /// 20% faster with a buffer for rows of `pitch` weights, of which a
    /// [slice](QuantizedTensor::slice) takes K.
    Buffer(wgpu::Buffer, u64),
}

impl QuantizedTensor {
    /// Weights \[N,K\], or \[G,N,K\], from their planes, given in the order of
    /// [`QuantFormat::planes`]. A plane holds its share of every block, row after row.
    ///
    /// ```
    /// use tilewise::{Context, Gemm, PlaneSource, QuantFormat, QuantizedTensor, Tensor};
    ///
    /// # fn main() -> tilewise::Result<()> {
    /// let ctx = Context::new()?;
    /// let codes = [0x22; 16]; // 32 codes of mxfp4, two in a byte; each stands for 1
    /// let scales = [0x80]; // the power of two of these 32 weights: 2
    /// let planes = [PlaneSource::Bytes(&codes), PlaneSource::Bytes(&scales)];
    /// let w = QuantizedTensor::from_planes(&ctx, QuantFormat::MXFP4, &[1, 32], &planes)?;
    /// let x = Tensor::upload(&ctx, &[1.0f32; 32], &[1, 32])?;
    /// assert_eq!(Gemm::new(&x, &w).run()?.read_blocking::<f32>()?, [64.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Shape`](crate::Error) for another shape, a K that is not a multiple of
    /// [`QuantFormat::block`], another number of planes or bytes, a buffer that is too short, and a
    /// byte that no binding of the device begins at; `Misuse` for a buffer without `STORAGE`, or on
    /// the CPU executor.
    pub fn from_planes(
        context: &Context,
        format: QuantFormat,
        shape: &[usize],
        sources: &[PlaneSource<'_>],
    ) -> Result<Self> {
        let [.., k] = matrices(shape)?;
        let sizes = sizes(format, shape, k)?;
        if sources.len() != sizes.len() {
            let names: Vec<_> = format.planes().iter().map(|plane| plane.name).collect();
            return Err(Error::Shape(format!(
                "{} planes of {format}, which has {}",
                sources.len(),
                names.join(", ")
            )));
        }
        let copied = sources.iter().all(|source| matches!(source, PlaneSource::Bytes(_)));
        let pitch = if copied { pitch(context, format, shape)? } else { k };
        let factor = match format.divided_plane().map(|plane| &sources[plane]) {
            Some(PlaneSource::Bytes(bytes)) => format.power_of([*bytes].into_iter()),
            _ => 1.0,
        };
        let mut planes = Vec::with_capacity(sources.len());
        let kinds = format.planes().iter().zip(Spacing::of_planes(format, k, pitch));
        for ((source, (plane, spacing)), size) in sources.iter().zip(kinds).zip(sizes) {
            planes.push(match source {
                PlaneSource::Bytes(bytes) if bytes.len() != size => {
                    let (name, held) = (plane.name, bytes.len());
                    let text = format!(
                        "{format} weights {shape:?} take {size} bytes of {name}, there are {held}"
                    );
                    return Err(Error::Shape(text));
                }
                PlaneSource::Bytes(bytes) => {
                    let bytes = format.divided(planes.len(), bytes, factor);
                    Storage::with_bytes(context, &spacing.spread(0, &bytes)?)?
                }
                PlaneSource::Buffer(buffer, start) => {
                    in_buffer(context, buffer, *start, plane.name, size as u64)?
                }
            });
        }
        let made = Self::of_planes(context, format, shape, pitch, planes)?;
        Ok(QuantizedTensor { factor, ..made })
    }

    /// Uploads matrices of one format as weights of a shape, with gaps between their rows.
    pub(super) fn spread(
        context: &Context,
        format: QuantFormat,
        shape: &[usize],
        weights: &[Quantized],
    ) -> Result<Self> {
        let pitch = pitch(context, format, shape)?;
        let bytes = |plane: usize| weights.iter().map(move |w| &w.planes()[plane][..]);
        let factor = format.divided_plane().map_or(1.0, |plane| format.power_of(bytes(plane)));
        let upload = |(plane, spacing): (usize, Spacing)| {
            let divided = |bytes| format.divided(plane, bytes, factor);
            let planes: Vec<_> = bytes(plane).map(divided).collect();
            let planes: Vec<_> = planes.iter().map(AsRef::as_ref).collect();
            Storage::with_bytes(context, &spacing.spread_all(&planes)?)
        };
        let spacings = Spacing::of_planes(format, matrices(shape)?[2], pitch);
        let planes = spacings.into_iter().enumerate().map(upload).collect::<Result<_>>()?;
        let made = Self::of_planes(context, format, shape, pitch, planes)?;
        Ok(QuantizedTensor { factor, ..made })
    }

    /// The weights whose planes lie in storage, with `pitch` weights from row to row. The planes
    /// must have the right lengths.
    pub(crate) fn of_planes(
        context: &Context,
        format: QuantFormat,
        shape: &[usize],
        pitch: usize,
        planes: Vec<Storage>,
    ) -> Result<Self> {
        let [entries, n, k] = matrices(shape)?.map(|size| size as u64);
        Ok(QuantizedTensor {
            context: context.clone(),
            format,
            planes,
            operand: Operand::packed(Format::Quantized(format), entries, n, pitch as u64).t(),
            entries,
            stacked: shape.len() == 3,
            n,
            k,
            part: false,
            status: None,
            factor: 1.0,
            order: None,
            copy: None,
            constant: false,
        })
    }
}

fn in_buffer(
    context: &Context,
    buffer: &wgpu::Buffer,
    start: u64,
    name: &'static str,
    size: u64,
) -> Result<Storage> {
    let storage = Storage::of_buffer(context, buffer.clone(), start)?;
    let alignment = u64::from(context.0.caps.storage_alignment);
    if !start.is_multiple_of(alignment) {
        return Err(Error::Shape(format!(
            "misaligned: {name} begins at byte {start}; bindings of this device begin at multiples \
             of {alignment}"
        )));
    }
    // Kernels read whole words.
    let (needed, held) = (size.next_multiple_of(4), storage.bytes());
    if needed > held {
        return Err(Error::Shape(format!(
            "{name} takes {needed} bytes; the buffer holds {held} from byte {start} on"
        )));
    }
    Ok(storage)
}
