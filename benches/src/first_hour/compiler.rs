//! Asks Apple's compiler what it says of a text, and how many threads it leaves a pipeline. Other
//! systems have no such compiler.

#[cfg(target_vendor = "apple")]
mod apple;

use serde::{Deserialize, Serialize};
use tilewise::{Context, wgpu};

/// Versions of Metal's language to compile for, 310 for 3.1.
pub const VERSIONS: [u32; 3] = [240, 310, 400];

/// A complaint of the compiler.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Complaint {
    /// Label of the text.
    pub text: String,
    /// The compiler's words, in one line.
    pub words: String,
}

/// The compiler's words on a text: warnings if it compiles, else the error.
pub type Verdict = Result<Option<String>, String>;

/// Checks that the compiler can be asked, in this version of the language if one is given.
///
/// # Errors
/// Why the compiler cannot be asked.
pub fn is_there(version: Option<u32>) -> Result<(), String> {
    #[cfg(target_vendor = "apple")]
    return version.map_or(Ok(()), |version| apple::language(version).map(drop));
    #[cfg(not(target_vendor = "apple"))]
    {
        let _ = version;
        Err(ELSEWHERE.into())
    }
}

/// Seconds after which the compiler is given no further text.
pub const PATIENCE: u64 = 75;

/// The compiler's words on each text in this version of the language, for as many texts as it takes
/// in [`PATIENCE`].
///
/// # Errors
/// Why the compiler cannot be asked.
pub fn verdicts(context: &Context, version: u32, texts: &[&str]) -> Result<Vec<Verdict>, String> {
    #[cfg(target_vendor = "apple")]
    return apple::verdicts(context, version, texts);
    #[cfg(not(target_vendor = "apple"))]
    {
        let _ = (context, version, texts);
        Err(ELSEWHERE.into())
    }
}

/// The most threads of a threadgroup of each text's pipeline, or the error. The version of the
/// language is the one that wgpu compiles for. There are answers for as many texts as the compiler
/// takes in [`PATIENCE`].
///
/// # Errors
/// Why the compiler cannot be asked.
pub fn threads(context: &Context, texts: &[&str]) -> Result<Vec<Result<u64, String>>, String> {
    #[cfg(target_vendor = "apple")]
    return apple::threads(context, texts);
    #[cfg(not(target_vendor = "apple"))]
    {
        let _ = (context, texts);
        Err(ELSEWHERE.into())
    }
}

/// The compiler's error for a text that wgpu has refused, if the compiler can be asked and refuses
/// it too.
pub(super) fn complaint(device: &wgpu::Device, text: &str) -> Option<String> {
    #[cfg(target_vendor = "apple")]
    return apple::complaint(device, text);
    #[cfg(not(target_vendor = "apple"))]
    {
        let _ = (device, text);
        None
    }
}

#[cfg(not(target_vendor = "apple"))]
const ELSEWHERE: &str = "needs Apple's compiler, which is part of macOS and iOS alone";
