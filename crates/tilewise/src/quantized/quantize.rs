//! Quantizing weights on the device.

use crate::context::Context;
use crate::execute::source::Source;
use crate::gpu::Conversion;
use crate::host::memory;
use crate::quantized::QuantizedTensor;
use crate::quantized::status::{STATUS_BYTES, quantize_all};
use crate::recorder::{AsRecorder, Way};
use crate::tensor::Tensor;
use crate::tensor::spacing::Spacing;
use crate::tensor::storage::{Bound, Buffers, Storage, on_device};
use tilewise_core::kernel::Role;
use tilewise_core::plan::{self, Table};
use tilewise_core::{Error, Format, Operand, QuantFormat, Result};

/// Quantizes weights \[N,K\] or \[G,N,K\] on the device. Every device gives the same bits as
/// [`quant::quantize`](tilewise_core::quant::quantize()).
///
/// Devices make affine formats, mxfp4, mxfp8, nvfp4 and Q8_0. The CPU executor makes every format
/// that [`QuantFormat::quantizes`] names.
///
/// A GPU cannot refuse weights that are NaN or infinite, or beyond the format's range.
/// [`QuantizedTensor::check`] reports them afterwards.
///
/// ```
/// use tilewise::{Context, DType, QuantFormat, Quantize, Tensor};
///
/// # fn main() -> tilewise::Result<()> {
/// let ctx = Context::new()?;
/// let w: Vec<f32> = (0..64).map(|i| (i % 16) as f32).collect();
/// let w = Tensor::upload(&ctx, &w, &[1, 64])?;
/// let w = Quantize::new(&w, QuantFormat::affine(4, 64, DType::F16)?).run()?;
/// w.check_blocking()?; // the format holds all of them
/// assert_eq!(w.dequantize(DType::F32)?.read_blocking::<f32>()?[15], 15.0);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing is quantized until it is run or recorded"]
pub struct Quantize {
    weights: Tensor,
    format: QuantFormat,
}

impl Quantize {
    /// Takes weights in f32, f16 or bf16, in a view whose rows or columns are contiguous.
    pub fn new(weights: &Tensor, format: QuantFormat) -> Self {
        Quantize { weights: weights.clone(), format }
    }

    /// Quantizes to new memory. The work is submitted, not waited for.
    ///
    /// # Errors
    /// [`Shape`](crate::Error), `Unsupported`, `DeviceLimit` for weights that cannot be quantized
    /// on this device. On the CPU executor `Misuse` for numbers that the format does not hold.
    pub fn run(&self) -> Result<QuantizedTensor> {
        let out = QuantizedTensor::zeros(self.context(), self.format, self.weights.shape())?;
        self.run_into(&out)?;
        Ok(out)
    }

    /// Quantizes into `out`, made by [`QuantizedTensor::zeros`]. The work is submitted, not waited
    /// for.
    ///
    /// # Errors
    /// The errors of [`run`](Self::run). For the output: [`Shape`](crate::Error) when it has
    /// another shape or format than the weights want, is a slice, or shares a buffer with the
    /// weights; `Misuse` when it was not made by [`QuantizedTensor::zeros`], is
    /// [prepared](crate::Prepared), or belongs to another context; `Unsupported`
    /// when it has a factor or an order of columns.
    pub fn run_into(&self, out: &QuantizedTensor) -> Result<()> {
        self.context().submit(|to| self.record(to, out))
    }

    /// Adds the work to the given compute pass, command encoder or recorder. A pass cannot clear
    /// the status that earlier work has left for [`QuantizedTensor::check`].
    ///
    /// # Errors
    /// The errors of [`run_into`](Self::run_into); [`Misuse`](crate::Error) on the CPU executor,
    /// unless the recorder is its own, and for the recorder of another context.
    pub fn record(&self, to: &mut impl AsRecorder, out: &QuantizedTensor) -> Result<()> {
        let mut to = to.as_recorder();
        let (gpu, target) = match to.way(self.context())? {
            Way::Record(gpu, target) => (gpu, target),
            Way::Run => return self.on_host(out),
            Way::Plan(planned) => {
                self.bundle(out)?;
                let (quantize, out) = (self.clone(), out.clone());
                planned.operations.push(Box::new(move |to| quantize.record(to, &out)));
                return Ok(());
            }
        };
        let (quantize, buffers) = self.bundle(out)?;
        if let Some(Storage::Gpu { buffer, start }) = out.status.as_ref().map(|own| &own.storage) {
            target.clear(buffer, *start, STATUS_BYTES);
        }
        let compiled = gpu.convert(Conversion::Quantize(quantize), &self.context().0.caps)?;
        gpu.record(target, &compiled, Default::default(), on_device(&buffers))
    }

    fn bundle<'s>(&'s self, out: &'s QuantizedTensor) -> Result<(plan::Quantize, Buffers<'s>)> {
        let (sizes, stride) = self.weights.table("the weights")?;
        let [entries, rows, columns] = sizes.map(|size| size as u64);
        let (operand, bound) = self.weights.operand("the weights", [0, 0, 0, stride])?;
        let weights = Table { operand, entries, rows, columns };
        // An output of another shape, which is refused below, may have another pitch.
        let pitch = if out.k == columns { out.operand.ld } else { self.format.pitch(columns) };
        let quantize = plan::Quantize { weights, format: self.format, pitch }.checked()?;
        self.context().same(&out.context, "the output")?;
        if out.factor != 1.0 || out.order.is_some() {
            let text = "quantizing into weights that have a factor or an order of columns";
            return Err(Error::Unsupported(text.into()));
        }
        if out.constant {
            let text = "writing to prepared weights, whose copy would not follow: quantize into \
                        weights that QuantizedTensor::zeros makes";
            return Err(Error::Misuse(text.into()));
        }
        if out.part || out.is_transposed() || out.table() != quantize.output() {
            let (wanted, got) = (self.weights.shape(), out.shape());
            let part = if out.part { "a part of larger weights, " } else { "" };
            return Err(Error::Shape(format!(
                "the output must be weights of its own, {} {wanted:?}; it is {part}{} {got:?}",
                self.format, out.format
            )));
        }
        let Some(status) = &out.status else {
            return Err(Error::Misuse(
                "an output to quantize into is made by QuantizedTensor::zeros".into(),
            ));
        };
        let mut buffers = Buffers::default();
        buffers[Role::A as usize] = Some(bound);
        buffers[Role::Status as usize] = Some(Bound::whole(&status.storage));
        for (role, plane) in Role::B.planes().zip(&out.planes) {
            if bound.storage.shares(plane) {
                let how = "lie in one buffer: QuantizedTensor::zeros makes another";
                return Err(Error::aliased("the weights", how));
            }
            buffers[role as usize] = Some(Bound::whole(plane));
        }
        Ok((quantize, buffers))
    }

    fn context(&self) -> &Context {
        self.weights.context()
    }

    fn on_host(&self, out: &QuantizedTensor) -> Result<()> {
        let (plan::Quantize { weights, format, pitch }, _) = self.bundle(out)?;
        let Table {
            operand: Operand { offset, ld, batch_stride, transposed, .. },
            entries,
            rows,
            columns,
        } = weights;
        let dtype = self.weights.dtype();
        let words = self.weights.storage().host()?;
        let source = Source::new(Format::Dense(dtype), &[&words]);
        let mut elements = memory::room((entries * rows * columns) as usize)?;
        let mut line = memory::filled(columns as usize, 0f32)?;
        for entry in 0..entries {
            for row in 0..rows {
                let [between, along] = if transposed { [1, ld] } else { [ld, 1] };
                let first = offset + entry * batch_stride + row * between;
                source.read_apart(first, along, &mut line);
                elements.extend_from_slice(&line);
            }
        }
        let sizes = [entries, rows, columns].map(|size| size as usize);
        let made = quantize_all(&elements, sizes, out.stacked, format)?;
        let spacings = Spacing::of_planes(format, columns as usize, pitch as usize);
        for ((target, source), spacing) in out.planes.iter().zip(made.planes()).zip(spacings) {
            let spread = spacing.spread(0, source)?;
            let mut words = target.host_mut()?;
            bytemuck::cast_slice_mut(&mut words)[..spread.len()].copy_from_slice(&spread);
        }
        Ok(())
    }
}

impl Tensor {
    /// Quantizes the tensor on the device: see [`Quantize`]. The work is submitted, not waited for;
    /// [`QuantizedTensor::check`] reports weights that the format does not hold.
    ///
    /// # Errors
    /// The errors of [`Quantize::run`].
    pub fn quantize(&self, format: QuantFormat) -> Result<QuantizedTensor> {
        Quantize::new(self, format).run()
    }

    /// Like [`quantize`](Self::quantize), blocking.
    ///
    /// # Errors
    /// The errors of [`Quantize::run`]; [`Misuse`](crate::Error) for weights that the format does
    /// not hold.
    #[cfg(not(target_family = "wasm"))]
    pub fn quantize_blocking(&self, format: QuantFormat) -> Result<QuantizedTensor> {
        let quantized = self.quantize(format)?;
        quantized.check_blocking()?;
        Ok(quantized)
    }
}
