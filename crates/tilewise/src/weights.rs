//! The weights of a model file on a device.

mod dense;

use crate::context::Context;
use crate::host::memory;
use crate::quantized::{self, QuantizedTensor};
use crate::right::RightOperand;
use crate::tensor::Tensor;
use crate::tensor::spacing::Spacing;
use crate::tensor::storage::{Filler, Storage};
use std::path::Path;
use tilewise_core::{Error, QuantFormat, Result};
use tilewise_files::{Chunk, Expected, Model, TensorKind};

/// The files of a model, from which tensors are loaded to a device one by one: `.safetensors` in
/// MLX's naming, sharded or not, GGUF, GPTQ, AWQ, FP8, bitsandbytes, HQQ, GPT-OSS and
/// compressed-tensors.
///
/// [`open`](Self::open) reads the files into memory, [`map`](Self::map) maps them. Loading a tensor
/// streams it: beside the files and the device's memory this takes some tens of MiB, whatever the
/// size of the tensor.
///
/// ```no_run
/// use tilewise::{Context, Gemm, Tensor, Weight, Weights};
///
/// # fn main() -> tilewise::Result<()> {
/// let ctx = Context::new()?;
/// let weights = Weights::open(&ctx, "model.gguf")?;
/// for tensor in weights.model().tensors() {
///     println!("{} {} {:?}", tensor.name(), tensor.kind(), tensor.shape());
/// }
/// let up = weights.quantized("blk.0.ffn_up.weight")?;
/// let x = Tensor::zeros(&ctx, tilewise::DType::F16, &[1, up.shape()[1]])?;
/// let y = Gemm::new(&x, &up).run()?;
/// # Ok(())
/// # }
/// ```
pub struct Weights {
    context: Context,
    model: Model,
}

/// A tensor of a model.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Weight {
    /// Numbers, in the type of the file.
    Dense(Tensor),
    /// A matrix \[N,K\] in few bits, or a stack of them \[E,N,K\].
    Quantized(QuantizedTensor),
}

impl Weights {
    /// Opens a `.safetensors` file, the index of a sharded model, a `.gguf` file or the first of a
    /// split model, or a folder that holds one of these ([`Model::open`]). The files are read as a
    /// whole, and held as long as the `Weights`; [`map`](Self::map) needs no memory for them.
    ///
    /// # Errors
    /// The errors of [`Model::open`].
    pub fn open(context: &Context, path: impl AsRef<Path>) -> Result<Self> {
        Ok(Self::new(context, Model::open(path)?))
    }

    /// Like [`open`](Self::open), with the files mapped into memory, not read.
    ///
    /// # Safety
    /// Nobody writes to the files, or shortens them, while they are open, as for [`Model::map`].
    ///
    /// # Errors
    /// The errors of [`Model::open`].
    pub unsafe fn map(context: &Context, path: impl AsRef<Path>) -> Result<Self> {
        // SAFETY: the caller promises what `Model::map` wants.
        Ok(Self::new(context, unsafe { Model::map(path)? }))
    }

    /// The weights of a model that is open.
    pub fn new(context: &Context, model: Model) -> Self {
        Weights { context: context.clone(), model }
    }

    /// The model: its files, and the descriptions of their tensors.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The names of all tensors. The name of a quantized matrix is its prefix, such as
    /// `model.layers.0.mlp.up_proj`.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.model.tensors().map(|tensor| tensor.name())
    }

    /// All tensors, each loaded when its turn comes.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Result<Weight>)> {
        self.names().map(|name| (name, self.get(name)))
    }

    /// Loads a tensor: by its prefix, or the full name of one of the tensors that hold it.
    ///
    /// # Errors
    /// [`File`](crate::Error) when no tensor has this name, with the nearest names, when the tensor
    /// is malformed, and when places of the files contradict each other; `Misuse` when several
    /// formats fit it, with their names; `Unsupported` for numbers of a type that tensors do not
    /// have; otherwise as [`Tensor::upload`].
    pub fn get(&self, name: &str) -> Result<Weight> {
        self.get_as(name, &Expected::default())
    }

    /// Like [`get`](Self::get), for a tensor that must have the expected format.
    ///
    /// # Errors
    /// The errors of [`get`](Self::get); [`Misuse`](crate::Error) when no format can be as
    /// expected; `File` when the file or its `config.json` says another format.
    pub fn get_as(&self, name: &str, expected: &Expected) -> Result<Weight> {
        self.get_with(name, expected, &mut |_, _| {})
    }

    /// Like [`get_as`](Self::get_as). `progress` gets the number of bytes loaded so far, and the
    /// number of all.
    ///
    /// # Errors
    /// The errors of [`get_as`](Self::get_as).
    pub fn get_with(
        &self,
        name: &str,
        expected: &Expected,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Weight> {
        Weight::load(&self.context, &self.model.get_as(name, expected)?, progress)
    }

    /// Loads a tensor that is quantized.
    ///
    /// # Errors
    /// The errors of [`get`](Self::get); [`Misuse`](crate::Error) when it is dense.
    pub fn quantized(&self, name: &str) -> Result<QuantizedTensor> {
        named(name, self.get(name)?.quantized())
    }

    /// Loads a tensor that is dense.
    ///
    /// # Errors
    /// The errors of [`get`](Self::get); [`Misuse`](crate::Error) when it is quantized.
    pub fn dense(&self, name: &str) -> Result<Tensor> {
        named(name, self.get(name)?.dense())
    }

    /// `Misuse` unless the files are GGUF, or are not, as `expected`.
    fn is_gguf(&self, expected: bool) -> Result<()> {
        let file = self.model.files().next().unwrap_or_default();
        match (self.model.gguf_version(), expected) {
            (None, true) => {
                Err(Error::Misuse(format!("{file} is no GGUF file: open it by from_safetensors")))
            }
            (Some(_), false) => {
                Err(Error::Misuse(format!("{file} is a GGUF file: open it by from_gguf")))
            }
            _ => Ok(()),
        }
    }
}

/// Adds the tensor's name to an error of misuse.
fn named<T>(name: &str, result: Result<T>) -> Result<T> {
    result.map_err(|error| match error {
        Error::Misuse(text) => Error::Misuse(format!("{name} is {text}")),
        other => other,
    })
}

impl std::fmt::Debug for Weights {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Weights")
            .field("files", &self.model.files().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

impl From<Weight> for RightOperand {
    fn from(weight: Weight) -> Self {
        match weight {
            Weight::Dense(tensor) => tensor.into(),
            Weight::Quantized(weights) => weights.into(),
        }
    }
}

impl Weight {
    /// The tensor, if it is dense.
    ///
    /// # Errors
    /// [`Misuse`](crate::Error) when it is quantized.
    pub fn dense(self) -> Result<Tensor> {
        match self {
            Weight::Dense(tensor) => Ok(tensor),
            Weight::Quantized(tensor) => Err(Error::Misuse(format!(
                "a dense tensor is expected; these are quantized weights, {} {:?}",
                tensor.format(),
                tensor.shape()
            ))),
        }
    }

    /// The matrix, if it is quantized.
    ///
    /// # Errors
    /// [`Misuse`](crate::Error) when it is dense.
    pub fn quantized(self) -> Result<QuantizedTensor> {
        match self {
            Weight::Quantized(tensor) => Ok(tensor),
            Weight::Dense(tensor) => Err(Error::Misuse(format!(
                "quantized weights are expected; this is a dense tensor, {} {:?}",
                tensor.dtype(),
                tensor.shape()
            ))),
        }
    }

    /// Loads a tensor of an open model. `progress` gets the number of bytes loaded so far, and the
    /// number of all.
    ///
    /// # Errors
    /// The errors of [`Weights::get`].
    pub fn load(
        context: &Context,
        tensor: &tilewise_files::TensorView<'_>,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Self> {
        if let TensorKind::Other(_) = tensor.kind() {
            // `dense` gives the error, which names file and type.
            tensor.dense()?;
        }
        let shape = tensor.shape();
        let TensorKind::Quantized(format) = *tensor.kind() else {
            let (dtype, _) = tensor.dense()?;
            let sizes = tensor.sizes()?;
            let (storage, _) =
                load_planes(context, tensor, &sizes, &[Spacing::NONE], None, progress)?;
            let storage =
                storage.into_iter().next().ok_or_else(|| Error::file("a tensor without bytes"))?;
            return Ok(Weight::Dense(Tensor::packed(context, dtype, shape, storage)));
        };
        // A vector is one row. With more dimensions than a stack has, all but the last count as
        // rows.
        let (n, k) = tensor.matrix()?;
        let shape = if matches!(shape.len(), 2 | 3) { shape } else { &[n, k] };
        let pitch = quantized::pitch(context, format, shape)?;
        let sizes = quantized::sizes(format, shape, pitch)?;
        let spacings = Spacing::of_planes(format, k, pitch);
        let (planes, factor) =
            load_planes(context, tensor, &sizes, &spacings, Some(format), progress)?;
        let mut weights = QuantizedTensor::of_planes(context, format, shape, pitch, planes)?;
        weights.factor = factor;
        if let Some(factor) = tensor.factor() {
            weights = weights.with_factor(factor)?;
        }
        if let Some(order) = tensor.order()? {
            weights = weights.with_order(&order)?;
        }
        Ok(Weight::Quantized(weights))
    }
}

/// Streams planes of these sizes in bytes to the device. Scales that may be divided wait until all
/// are there; gives the power of two by which they were divided.
fn load_planes(
    context: &Context,
    tensor: &tilewise_files::TensorView<'_>,
    sizes: &[usize],
    spacings: &[Spacing],
    format: Option<QuantFormat>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<(Vec<Storage>, f32)> {
    let planes = sizes
        .iter()
        .map(|&size| Storage::zeros(context, size as u64))
        .collect::<Result<Vec<_>>>()?;
    let filler = |(plane, spacing): (_, &Spacing)| Filler::new(context, plane, *spacing);
    let mut fillers: Vec<_> = planes.iter().zip(spacings).map(filler).collect();
    let (mut done, total) = (0, tensor.sizes()?.iter().map(|&size| size as u64).sum());
    let divided_plane = format.and_then(QuantFormat::divided_plane);
    let mut scales = memory::room(divided_plane.map_or(0, |plane| sizes[plane]))?;
    tensor.stream(&mut |chunk: Chunk<'_>| {
        if divided_plane == Some(chunk.plane) {
            scales.extend_from_slice(chunk.bytes);
        } else {
            fillers[chunk.plane].append(chunk.bytes)?;
        }
        done += chunk.bytes.len() as u64;
        progress(done, total);
        Ok(())
    })?;
    let mut factor = 1.0;
    if let (Some(format), Some(plane)) = (format, divided_plane) {
        factor = format.power_of([&scales[..]].into_iter());
        fillers[plane].append(&format.divided(plane, &scales, factor))?;
    }
    fillers.into_iter().try_for_each(Filler::finish)?;
    Ok((planes, factor))
}

impl QuantizedTensor {
    /// Loads a quantized matrix, or a stack of them, from a `.safetensors` file or a sharded model,
    /// by its prefix. `expected` is the format if you know it (`&QuantFormat::NVFP4.into()`), or
    /// else `&Expected::default()`. It decides if the file fits several formats. The whole file is
    /// read; for several tensors, or a large file, open [`Weights`].
    ///
    /// ```no_run
    /// use tilewise::model::Expected;
    /// use tilewise::{Context, QuantFormat, QuantizedTensor};
    ///
    /// # fn main() -> tilewise::Result<()> {
    /// let ctx = Context::new()?;
    /// let prefix = "model.layers.0.mlp.up_proj";
    /// let file = "model.safetensors";
    /// // The file or its config.json tells the format, or the shapes leave one alone.
    /// let w = QuantizedTensor::from_safetensors(&ctx, file, prefix, &Expected::default())?;
    /// // You know it.
    /// let format = QuantFormat::NVFP4.into();
    /// let w = QuantizedTensor::from_safetensors(&ctx, file, prefix, &format)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The errors of [`Weights::open`] and [`Weights::get_with`]; [`Misuse`](crate::Error) when the
    /// tensor is dense, and for a GGUF file.
    pub fn from_safetensors(
        context: &Context,
        path: impl AsRef<Path>,
        prefix: &str,
        expected: &Expected,
    ) -> Result<Self> {
        let weights = Weights::open(context, path)?;
        weights.is_gguf(false)?;
        named(prefix, weights.get_as(prefix, expected)?.quantized())
    }

    /// Loads a quantized matrix, or a stack of them, from a `.gguf` file, which tells its format.
    /// The whole file is read; for several tensors, or a large file, open [`Weights`].
    ///
    /// # Errors
    /// The errors of [`Weights::open`] and [`Weights::get`]; [`Misuse`](crate::Error) when the
    /// tensor is dense, and for a file that is not GGUF.
    pub fn from_gguf(context: &Context, path: impl AsRef<Path>, name: &str) -> Result<Self> {
        let weights = Weights::open(context, path)?;
        weights.is_gguf(true)?;
        weights.quantized(name)
    }
}
