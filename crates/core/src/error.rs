//! The one error type. Its kind says what helps, its text has the numbers.

use std::fmt::Display;
use std::sync::Arc;

/// Why a call failed. Also the error of the crate `tilewise`.
///
/// | kind | what happened | what helps |
/// |---|---|---|
/// | [`Shape`](Error::Shape) | operands or buffers do not fit together | another shape or view |
/// | [`Misuse`](Error::Misuse) | the call is wrong on every device | another call |
/// | [`Unsupported`](Error::Unsupported) | no device takes the dtype or format here | another one |
/// | [`DeviceLimit`](Error::DeviceLimit) | this device cannot | another device, smaller operands |
/// | [`OutOfMemory`](Error::OutOfMemory) | no memory is left | smaller operands |
/// | [`DeviceLost`](Error::DeviceLost) | the device is gone | a new context |
/// | [`Device`](Error::Device) | no device, or its driver fails | another adapter, or the CPU |
/// | [`File`](Error::File) | a file or tensor is missing or unfit | another file or name |
///
/// Each call that uses a device may give `DeviceLimit`, `OutOfMemory`, `DeviceLost` or `Device`.
/// The sections *Errors* name these only if there is more to say.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Operands or buffers that do not fit together: shapes, strides, alignment, group offsets, an
    /// output that overlaps an operand, counts beyond u32.
    #[error("{0}")]
    Shape(String),
    /// A call that is wrong on every device: an argument, a number, a name, a choice left open, an
    /// operand of another context, a custom kernel that is not valid. The text says what would be
    /// right, or points at the place in the kernel's text.
    #[error("{0}")]
    Misuse(String),
    /// A dtype or format that no device takes in this place.
    #[error("unsupported: {0}")]
    Unsupported(String),
    /// The device lacks a feature, room in a binding or buffer, or a kernel for the operands. The
    /// text names what is missing; f32 needs least, and a forced kernel may be the cause.
    #[error("{0}")]
    DeviceLimit(String),
    /// The device or the host has no memory left for what was asked.
    #[error("out of memory: {0}")]
    OutOfMemory(String),
    /// The device is lost; nothing can be run or read on this context any more.
    #[error("device lost: {0}")]
    DeviceLost(String),
    /// No adapter fits the request, it gives no device, or the driver reports an error.
    #[error("{text}")]
    Device {
        /// The attempt, and the driver's words.
        text: String,
        /// The error that wgpu reported.
        source: Option<Cause>,
    },
    /// A file or tensor that is not there, is malformed, or is not as the arguments say; or a file
    /// that the system cannot open, map or write.
    #[error("{text}")]
    File {
        /// The file's name and the fault.
        text: String,
        /// The error that the system reported.
        source: Option<Cause>,
    },
}

#[doc(hidden)]
impl Error {
    /// An error of the driver, with what wgpu reported if that is at hand.
    pub fn device(text: impl Display, source: Option<Cause>) -> Self {
        Error::Device { text: format!("device error: {text}"), source }
    }

    /// No adapter fits the request.
    pub fn no_adapter(text: impl Display) -> Self {
        Error::Device { text: format!("no adapter: {text}"), source: None }
    }

    /// [`Error::File`] for what a file holds.
    pub fn file(text: impl Into<String>) -> Self {
        Error::File { text: text.into(), source: None }
    }

    /// [`Error::File`], with what the system reported.
    pub fn io(text: impl Into<String>, source: std::io::Error) -> Self {
        Error::File { text: text.into(), source: Some(Cause::new(source)) }
    }

    /// The storage of an operand ends before its shape and strides do.
    pub fn buffer_too_small(operand: &str, needed: u64, len: u64) -> Self {
        Error::Shape(format!(
            "buffer too small: {operand} needs {needed} elements (offset, strides and shape), its \
             storage holds {len}"
        ))
    }

    /// The output overlaps an input, or shares a buffer with one that is bound for reading alone.
    /// `how` has the bytes, and a call that works.
    pub fn aliased(operand: &str, how: impl Display) -> Self {
        Error::Shape(format!("aliasing: the output and {operand} {how}"))
    }

    /// An operand does not fit one binding or one buffer of the device. `which` names the limit.
    pub fn too_large(operand: &str, bytes: u64, limit: u64, which: &str) -> Self {
        Error::DeviceLimit(format!(
            "too large: {operand} needs {bytes} bytes, the limit is {limit} ({which})"
        ))
    }

    /// Another text for the same kind.
    pub fn map_text(mut self, text: impl FnOnce(String) -> String) -> Self {
        let own = match &mut self {
            Error::Shape(own)
            | Error::Misuse(own)
            | Error::Unsupported(own)
            | Error::DeviceLimit(own)
            | Error::OutOfMemory(own)
            | Error::DeviceLost(own)
            | Error::Device { text: own, .. }
            | Error::File { text: own, .. } => own,
        };
        *own = text(std::mem::take(own));
        self
    }
}

/// The error behind an error, as [`source`](std::error::Error::source) gives it. Two are equal when
/// their texts are.
#[derive(Clone, Debug)]
pub struct Cause(Arc<dyn std::error::Error + Send + Sync>);

impl Cause {
    /// Any error.
    #[doc(hidden)]
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
