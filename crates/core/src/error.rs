//! The one error type. Every message carries the numbers.

use std::sync::Arc;

/// Everything that can go wrong. Also the error of the crate `tilewise`.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Operand shapes that do not fit together.
    #[error("shape mismatch: {0}")]
    Shape(String),
    /// A count that does not fit the arithmetic of the kernels (u32 element indices) or of the
    /// host.
    #[error("overflow: {0}")]
    Overflow(String),
    /// The storage of an operand ends before its shape and strides do.
    #[error(
        "buffer too small: {operand} needs {needed} elements (offset, strides and shape), its \
         storage holds {len}"
    )]
    BufferTooSmall {
        /// Which operand.
        operand: &'static str,
        /// Elements needed, from the start of the storage.
        needed: u64,
        /// Elements held.
        len: u64,
    },
    /// A byte offset or size that the element type or the device does not allow.
    #[error("misaligned: {0}")]
    Misaligned(String),
    /// Strides that a kernel cannot follow, or under which elements of C overlap.
    #[error("strides: {0}")]
    Strides(String),
    /// The output overlaps an input, or shares a buffer with one that is bound for reading alone.
    #[error("aliasing: the output and {operand} {how}")]
    Aliased {
        /// The input that shares the output's buffer.
        operand: &'static str,
        /// How they meet, with the bytes, and a call that works.
        how: String,
    },
    /// A dtype or format that the operation does not take in this place, on any device; another one
    /// may do.
    #[error("unsupported: {0}")]
    Unsupported(String),
    /// A feature or limit that the device lacks; another device, dtype or a smaller grid may do.
    #[error("missing feature: {0}")]
    MissingFeature(String),
    /// A call that is wrong whatever the device and the numbers are; the text names one that works.
    #[error("misuse: {0}")]
    Misuse(String),
    /// An operand that does not fit one binding or one buffer of the device.
    #[error("too large: {operand} needs {bytes} bytes, the limit is {limit} ({which})")]
    TooLarge {
        /// Which operand.
        operand: &'static str,
        /// Bytes needed.
        bytes: u64,
        /// Bytes allowed.
        limit: u64,
        /// Name of the limit.
        which: &'static str,
    },
    /// No kernel accepts the problem on this device; the text lists each with its reason.
    #[error("no kernel takes this problem here: {0}")]
    NoKernel(String),
    /// No kernel has the name that was asked for.
    #[error("no kernel is named {name:?}; the nearest of {count} are {nearest}")]
    UnknownKernel {
        /// The name asked for.
        name: String,
        /// The nearest names.
        nearest: String,
        /// Names there are.
        count: usize,
    },
    /// Group offsets that decrease or exceed the number of rows.
    #[error("group offsets: {0}")]
    GroupOffsets(String),
    /// A value outside the range that the operation takes.
    #[error("invalid value: {0}")]
    InvalidValue(String),
    /// No adapter fits the request.
    #[error("no adapter: {0}")]
    NoAdapter(String),
    /// The device was refused by its adapter.
    #[error("no device: {text}")]
    NoDevice {
        /// Which adapter, and the driver's words.
        text: String,
        /// The error that wgpu reported.
        source: Option<Cause>,
    },
    /// The operation needs a GPU, and the context is the CPU executor; or operands belong to
    /// different contexts.
    #[error("wrong context: {0}")]
    WrongContext(String),
    /// The device is lost; nothing can be run or read on this context any more.
    #[error("device lost: {0}")]
    DeviceLost(String),
    /// The driver reported an error.
    #[error("device error: {text}")]
    Device {
        /// The attempt, and the driver's words.
        text: String,
        /// The error that wgpu reported.
        source: Option<Cause>,
    },
    /// The device or the host has no memory left for what was asked.
    #[error("out of memory: {0}")]
    OutOfMemory(String),
    /// A custom kernel that is not valid, does not fit its call or the device, or went wrong when
    /// it ran. The text points at the place in the caller's source, if there is one.
    #[error("kernel: {0}")]
    Kernel(String),
    /// No file or tensor has the name that was asked for.
    #[error("not found: {0}")]
    NotFound(String),
    /// Several files, tensors or formats fit. The text lists them; name one of them.
    #[error("ambiguous: {0}")]
    Ambiguous(String),
    /// The file says one thing, and the arguments or another place of the file another.
    #[error("contradiction: {0}")]
    Contradiction(String),
    /// Malformed data read from outside.
    #[error("malformed data: {0}")]
    Malformed(String),
    /// The system cannot open, map or write a file.
    #[error("file: {text}")]
    File {
        /// Which file, and the system's words.
        text: String,
        /// The error that the system reported.
        source: Option<Cause>,
    },
}

impl Error {
    /// [`Error::Device`], with what wgpu reported if that is at hand.
    pub fn device(text: impl Into<String>, source: Option<Cause>) -> Self {
        Error::Device { text: text.into(), source }
    }

    /// [`Error::File`], with what the system reported.
    pub fn file(text: impl Into<String>, source: std::io::Error) -> Self {
        Error::File { text: text.into(), source: Some(Cause::new(source)) }
    }
}

/// The error behind an error, as [`source`](std::error::Error::source) gives it. Two are equal when
/// their texts are.
#[derive(Clone, Debug)]
pub struct Cause(Arc<dyn std::error::Error + Send + Sync>);

impl Cause {
    /// Any error.
    pub fn new(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Cause(Arc::new(error))
    }

    /// The error itself, to be downcast.
    pub fn get(&self) -> &(dyn std::error::Error + Send + Sync + 'static) {
        &*self.0
    }
}

impl std::fmt::Display for Cause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Cause {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source()
    }
}

impl PartialEq for Cause {
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}

/// `std::result::Result` with [`enum@Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;
