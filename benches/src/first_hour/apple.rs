//! Metal's own compiler, asked directly: wgpu drops its warnings.

use super::Verdict;
use objc2::rc::{Retained, autoreleasepool};
use objc2::runtime::ProtocolObject;
use objc2::{available, msg_send};
use objc2_foundation::{NSError, NSString};
use objc2_metal::{MTLCompileOptions, MTLDevice, MTLLanguageVersion, MTLLibrary};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use tilewise::{Context, wgpu};

/// Seconds after which the compiler is given no further text.
const PATIENCE: u64 = 75;

type Device = ProtocolObject<dyn MTLDevice>;
type Library = Retained<ProtocolObject<dyn MTLLibrary>>;

/// A version of the language, 310 for 3.1. A version that the system does not know is an error,
/// because asking for it may end the process.
fn language(version: u32) -> Result<MTLLanguageVersion, String> {
    let (language, known, system) = match version {
        240 => (MTLLanguageVersion::Version2_4, available!(macos = 12.0, ios = 15.0), "macOS 12"),
        310 => (MTLLanguageVersion::Version3_1, available!(macos = 14.0, ios = 17.0), "macOS 14"),
        400 => (MTLLanguageVersion::Version4_0, available!(macos = 26.0, ios = 26.0), "macOS 26"),
        other => return Err(format!("no version of Metal's language is {other} here")),
    };
    if known {
        return Ok(language);
    }
    Err(format!("the system is older than {system}, which has this version of the language first"))
}

/// See [`super::verdicts`].
pub(super) fn verdicts(
    context: &Context,
    version: u32,
    texts: &[&str],
) -> Result<Vec<Verdict>, String> {
    let (language, device) = (language(version)?, device(context)?);
    Ok(each(texts, |text| compile(&device, text, language)))
}

fn device(context: &Context) -> Result<Retained<Device>, String> {
    let device = context.device().ok_or("there is no GPU")?;
    // SAFETY: the device is only asked for libraries and pipelines, and nothing of it is destroyed.
    let device =
        unsafe { device.as_hal::<wgpu::hal::api::Metal>() }.ok_or("the device is not Metal's")?;
    Ok(device.raw_device().clone())
}

/// Answers for the texts, in their order, found side by side, until [`PATIENCE`] is over.
fn each(texts: &[&str], answer: impl Fn(&str) -> Verdict + Sync) -> Vec<Verdict> {
    let start = Instant::now();
    let (next, found) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while start.elapsed().as_secs() < PATIENCE {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(text) = texts.get(at) else { break };
            let answer = autoreleasepool(|_| answer(text));
            found.lock().expect("nobody panics").push((at, answer));
        }
    };
    let threads = std::thread::available_parallelism().map_or(2, usize::from).min(4);
    std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    let mut found = found.into_inner().expect("nobody panics");
    found.sort_by_key(|(at, _)| *at);
    found.into_iter().map(|(_, answer)| answer).collect()
}

/// Compiles a text.
fn compile(device: &Device, text: &str, version: MTLLanguageVersion) -> Verdict {
    let text = NSString::from_str(text);
    let options = MTLCompileOptions::new();
    options.setLanguageVersion(version);
    let mut error: Option<Retained<NSError>> = None;
    // objc2-metal's own method drops the error if there is a library, too: then it holds the
    // warnings. SAFETY: the method takes a string, options and a place for an error, and gives a
    // new library or nil.
    let library: Option<Library> = unsafe {
        msg_send![device, newLibraryWithSource: &*text, options: &*options, error: &mut error]
    };
    let words = error.map(|error| said(&error));
    match library {
        Some(_) => Ok(words),
        None => Err(words.unwrap_or_else(|| "refused without a word".into())),
    }
}

/// The words of an error, in one line.
fn said(error: &NSError) -> String {
    error.localizedDescription().to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}
