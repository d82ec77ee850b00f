//! The memory of tensors: a buffer of the GPU, or on the host for the CPU executor.

use crate::context::{Backend, Context};
use crate::gpu::{Places, ROLES, SharedBuffer};
use crate::host::memory;
#[cfg(feature = "files")]
use crate::tensor::spacing::Spacing;
use std::ops::Range;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use tilewise_core::kernel::Role;
use tilewise_core::problem::Copied;
use tilewise_core::{Error, Problem, Result};

/// The memory in which bytes lie.
#[derive(Clone)]
pub(crate) enum Storage {
    /// From a byte of a buffer to its end.
    Gpu { buffer: Arc<SharedBuffer>, start: u64 },
    /// Words, which align any element type, and the number of their bytes that count.
    Host { words: Arc<RwLock<Vec<u32>>>, bytes: u64 },
}

/// Leaves out the words, of which there may be millions.
impl std::fmt::Debug for Storage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Storage::Gpu { buffer, start } => write!(f, "{buffer:?} from byte {start} on"),
            Storage::Host { bytes, .. } => write!(f, "{bytes} bytes on the host"),
        }
    }
}

impl Storage {
    /// New storage that holds a copy of `bytes`.
    pub(crate) fn with_bytes(context: &Context, bytes: &[u8]) -> Result<Self> {
        Self::repeating(context, bytes, bytes.len() as u64)
    }

    /// New storage of `bytes` bytes that repeat `block`.
    pub(crate) fn repeating(context: &Context, block: &[u8], bytes: u64) -> Result<Self> {
        match &context.0.backend {
            Backend::Gpu(gpu) => {
                let buffer = gpu.buffer_with(&context.0.caps, block, bytes)?;
                Ok(Storage::Gpu { buffer, start: 0 })
            }
            Backend::Cpu(_) => {
                let storage = Self::zeros(context, bytes)?;
                let mut words = storage.host_mut()?;
                let all: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
                for (place, piece) in memory::repeated(block, bytes as usize) {
                    all[place].copy_from_slice(piece);
                }
                drop(words);
                Ok(storage)
            }
        }
    }

    /// New storage of zeros.
    pub(crate) fn zeros(context: &Context, bytes: u64) -> Result<Self> {
        match &context.0.backend {
            Backend::Gpu(gpu) => {
                Ok(Storage::Gpu { buffer: gpu.buffer(&context.0.caps, bytes)?, start: 0 })
            }
            Backend::Cpu(_) => {
                let words = usize::try_from(bytes.div_ceil(4)).map_err(|_| {
                    Error::Shape(format!(
                        "overflow: {bytes} bytes do not fit this machine's memory"
                    ))
                })?;
                Ok(Storage::Host { words: Arc::new(RwLock::new(memory::filled(words, 0)?)), bytes })
            }
        }
    }

    /// Memory for the kernels of one call, with any content, as products have it.
    #[cfg(feature = "custom-kernels")]
    pub(crate) fn scratch(context: &Context, bytes: u64) -> Result<Self> {
        match &context.0.backend {
            Backend::Gpu(gpu) => Ok(Storage::Gpu { buffer: gpu.scratch(bytes)?, start: 0 }),
            Backend::Cpu(_) => Self::zeros(context, bytes),
        }
    }

    /// The given buffer from a byte on.
    pub(crate) fn of_buffer(context: &Context, buffer: wgpu::Buffer, start: u64) -> Result<Self> {
        let gpu = context.gpu_backend()?;
        if !buffer.usage().contains(wgpu::BufferUsages::STORAGE) {
            return Err(Error::Misuse(format!(
                "a buffer with usages {:?}: STORAGE is needed",
                buffer.usage()
            )));
        }
        Ok(Storage::Gpu { buffer: gpu.share(buffer), start })
    }

    /// Whether it is a buffer.
    pub(crate) fn is_on_gpu(&self) -> bool {
        matches!(self, Storage::Gpu { .. })
    }

    /// Bytes from the start of the storage to its end.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Storage::Gpu { buffer, start } => buffer.size().saturating_sub(*start),
            Storage::Host { bytes, .. } => *bytes,
        }
    }

    /// Reads a range of the bytes. Never blocks.
    pub(crate) async fn read(&self, context: &Context, range: Range<u64>) -> Result<Vec<u8>> {
        context.not_recording()?;
        match self {
            _ if range.is_empty() => Ok(Vec::new()),
            Storage::Gpu { buffer, start } => {
                let range = start + range.start..start + range.end;
                context.gpu_backend()?.device.read(buffer, range).await
            }
            Storage::Host { words, .. } => {
                let words = words.read().unwrap_or_else(PoisonError::into_inner);
                let range = range.start as usize..range.end as usize;
                memory::copied(&bytemuck::cast_slice(&words)[range])
            }
        }
    }

    /// Copies ranges of the bytes of other storage, each to the bytes from a place on. Devices copy
    /// words: there a range may end inside a word, whose rest is copied, too.
    ///
    /// # Errors
    /// [`Shape`](crate::Error) for a range or a place that begins inside a word, and for a word
    /// that the end of a buffer cuts off; `Misuse` for a buffer without `COPY_SRC`.
    pub(crate) fn copy_from(
        &self,
        context: &Context,
        source: &Storage,
        pieces: impl Iterator<Item = (Range<u64>, u64)>,
    ) -> Result<()> {
        let (Storage::Gpu { buffer: target, start: own }, Storage::Gpu { buffer, start }) =
            (self, source)
        else {
            let (from, mut to) = (source.host()?, self.host_mut()?);
            let (from, to) = (
                bytemuck::cast_slice::<u32, u8>(&from),
                bytemuck::cast_slice_mut::<u32, u8>(&mut to),
            );
            for (range, at) in pieces {
                let bytes = &from[range.start as usize..range.end as usize];
                to[at as usize..][..bytes.len()].copy_from_slice(bytes);
            }
            return Ok(());
        };
        let gpu = context.gpu_backend()?;
        if !buffer.usage().contains(wgpu::BufferUsages::COPY_SRC) {
            return Err(Error::Misuse(format!(
                "copying from a buffer with usages {:?}: COPY_SRC is needed",
                buffer.usage()
            )));
        }
        gpu.device.once(|encoder| {
            let call = gpu.device.call();
            for (range, at) in pieces {
                let (first, end) = (start + range.start, (start + range.end).next_multiple_of(4));
                let to = own + at;
                if !first.is_multiple_of(4) || !to.is_multiple_of(4) || end > buffer.size() {
                    return Err(Error::Shape(format!(
                        "misaligned: copying {} bytes from byte {first} of {} to byte {to}: \
                         devices copy words of 4 bytes",
                        range.end - range.start,
                        buffer.size()
                    )));
                }
                call.reads(buffer, first..end)?;
                call.writes(target, to..to + end - first)?;
                encoder.copy_buffer_to_buffer(buffer, first, target, to, end - first);
            }
            Ok(())
        })
    }

    /// Whether both lie in one buffer.
    pub(crate) fn shares(&self, other: &Storage) -> bool {
        match (self, other) {
            (Storage::Gpu { buffer: a, .. }, Storage::Gpu { buffer: b, .. }) => ***a == ***b,
            (Storage::Host { words: a, .. }, Storage::Host { words: b, .. }) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }

    /// A number by which host storage is told from other storage; 0 for a buffer.
    pub(crate) fn address(&self) -> usize {
        match self {
            Storage::Host { words, .. } => Arc::as_ptr(words) as usize,
            Storage::Gpu { .. } => 0,
        }
    }

    /// The words of host storage. A lock poisoned by a panic elsewhere still guards whole numbers.
    pub(crate) fn host(&self) -> Result<RwLockReadGuard<'_, Vec<u32>>> {
        match self {
            Storage::Host { words, .. } => Ok(words.read().unwrap_or_else(PoisonError::into_inner)),
            Storage::Gpu { .. } => {
                Err(Error::Misuse("wrong context: a GPU buffer on the CPU executor".into()))
            }
        }
    }

    /// The words of host storage, to be written.
    pub(crate) fn host_mut(&self) -> Result<RwLockWriteGuard<'_, Vec<u32>>> {
        match self {
            Storage::Host { words, .. } => {
                Ok(words.write().unwrap_or_else(PoisonError::into_inner))
            }
            Storage::Gpu { .. } => {
                Err(Error::Misuse("wrong context: a GPU buffer on the CPU executor".into()))
            }
        }
    }
}

/// Bytes that may wait for the queue while storage is filled.
#[cfg(feature = "files")]
const WAITING: u64 = 64 << 20;

/// Fills storage from its start, piece by piece.
#[cfg(feature = "files")]
pub(crate) struct Filler<'a> {
    context: &'a Context,
    storage: &'a Storage,
    /// Bytes written.
    done: u64,
    /// Bytes that do not fill a word yet.
    rest: Vec<u8>,
    /// Bytes written since the last wait for the queue.
    waiting: u64,
    /// Gaps behind rows.
    spacing: Spacing,
    /// Bytes given to `append` so far, without gaps.
    given: usize,
}

#[cfg(feature = "files")]
impl<'a> Filler<'a> {
    pub(crate) fn new(context: &'a Context, storage: &'a Storage, spacing: Spacing) -> Self {
        Filler { context, storage, done: 0, rest: Vec::new(), waiting: 0, spacing, given: 0 }
    }

    /// Writes the next bytes, and the gaps behind rows that they end.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let spaced = self.spacing.spread(self.given, bytes)?;
        self.given += bytes.len();
        self.write_bytes(&spaced)
    }

    /// Writes the next bytes of the storage. The device gets them in whole words.
    fn write_bytes(&mut self, mut bytes: &[u8]) -> Result<()> {
        if !self.rest.is_empty() {
            let needed = (4 - self.rest.len()).min(bytes.len());
            self.rest.extend(bytes.split_off(..needed).unwrap_or_default());
            if self.rest.len() < 4 {
                return Ok(());
            }
            let word = std::mem::take(&mut self.rest);
            self.write(&word)?;
        }
        let (whole, rest) = bytes.split_at(bytes.len() / 4 * 4);
        self.rest.extend(rest);
        self.write(whole)
    }

    /// Writes the bytes that do not fill a word, padded with zeros.
    pub(crate) fn finish(mut self) -> Result<()> {
        if !self.rest.is_empty() {
            self.rest.resize(4, 0);
            let word = std::mem::take(&mut self.rest);
            self.write(&word)?;
        }
        Ok(())
    }

    /// Writes whole words.
    fn write(&mut self, words: &[u8]) -> Result<()> {
        match self.storage {
            Storage::Gpu { buffer, start } => {
                let device = &self.context.gpu_backend()?.device;
                let (call, first) = (device.call(), start + self.done);
                call.writes(buffer, first..first + words.len() as u64)?;
                device.catch_invalid(|| device.queue.write_buffer(buffer, first, words))?;
                self.waiting += words.len() as u64;
                // wgpu keeps a copy of the bytes until the queue has written them.
                if self.waiting >= WAITING {
                    device.submit(device.encoder())?;
                    #[cfg(not(target_family = "wasm"))]
                    device.wait()?;
                    self.waiting = 0;
                }
            }
            Storage::Host { .. } => {
                let mut host = self.storage.host_mut()?;
                let first = self.done as usize;
                bytemuck::cast_slice_mut(&mut host)[first..first + words.len()]
                    .copy_from_slice(words);
            }
        }
        self.done += words.len() as u64;
        Ok(())
    }
}

/// The packed copy of a prepared operand.
#[derive(Debug)]
pub(crate) struct PackedCopy {
    /// The operand that it is prepared to be: A or B.
    pub(crate) role: Role,
    /// A copy, packed as kernels on matrix units want it. None if they take the operand as it lies.
    pub(crate) packed: Option<(Storage, Copied)>,
}

impl PackedCopy {
    /// Bytes of the copy; 0 if there is none.
    pub(crate) fn bytes(&self) -> u64 {
        self.packed.as_ref().map_or(0, |(storage, _)| storage.bytes())
    }
}

/// Storage, and the byte of its buffer from which it is bound.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bound<'a> {
    pub(crate) storage: &'a Storage,
    pub(crate) start: u64,
}

/// The storage of each role of a product, by the role's number.
pub(crate) type Buffers<'a> = [Option<Bound<'a>>; ROLES];

/// A problem with the storage of its operands.
pub(crate) struct Bundle<'a> {
    pub(crate) problem: Problem,
    pub(crate) buffers: Buffers<'a>,
}

impl<'a> Bound<'a> {
    pub(crate) fn whole(storage: &'a Storage) -> Self {
        let start = match storage {
            Storage::Gpu { start, .. } => *start,
            Storage::Host { .. } => 0,
        };
        Bound { storage, start }
    }

    /// The buffer and the byte, unless it is host storage.
    pub(crate) fn on_device(self) -> Option<(&'a SharedBuffer, u64)> {
        match self.storage {
            Storage::Gpu { buffer, .. } => Some((buffer, self.start)),
            Storage::Host { .. } => None,
        }
    }
}

/// The places of the operands of a product on the device.
pub(crate) fn on_device<'a>(buffers: &Buffers<'a>) -> Places<'a> {
    buffers.map(|bound| bound?.on_device())
}
