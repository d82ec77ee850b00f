//! Metal's capture of what a context submits, for those who write kernels:
//! `ContextOptions::metal_capture`.

use std::path::Path;
use std::sync::Once;

/// A capture that runs. Dropping it waits for what has been submitted, and ends it.
pub(crate) struct Capture {
    device: wgpu::Device,
}

impl Capture {
    /// Starts a capture into the file at `path`; on failure logs the reason.
    pub(crate) fn start(device: &wgpu::Device, path: &Path) -> Option<Self> {
        let shown = path.display();
        match start(device, path) {
            Ok(()) => {
                log::info!(
                    "what this context submits is captured into {shown}, which is whole when the \
                     context is dropped"
                );
                Some(Capture { device: device.clone() })
            }
            Err(why) => {
                say(path, &why);
                None
            }
        }
    }

    /// Logs that nothing captures the work of a context on the CPU.
    pub(crate) fn missing(path: &Path) {
        say(path, ELSEWHERE);
    }
}

/// Logs why nothing is captured. If this build never captures, only once in a process.
fn say(path: &Path, why: &str) {
    static SAID: Once = Once::new();
    let say = || log::warn!("nothing is captured into {} ({SOURCE}): {why}", path.display());
    if CAPTURES { say() } else { SAID.call_once(say) }
}

const ELSEWHERE: &str = "only Metal captures, so that it has no effect here";

/// Who asks for a capture.
const SOURCE: &str = "ContextOptions::metal_capture, TILEWISE_METAL_CAPTURE";

/// Whether this build can capture.
const CAPTURES: bool = cfg!(all(target_vendor = "apple", feature = "metal"));

impl Drop for Capture {
    fn drop(&mut self) {
        #[cfg(not(target_family = "wasm"))]
        if let Err(error) = self.device.poll(wgpu::PollType::wait_indefinitely()) {
            log::debug!("poll: {error}");
        }
        // SAFETY: `start` has started the capture on this device, and nobody but this drop ends it.
        unsafe { self.device.stop_graphics_debugger_capture() };
    }
}

#[cfg(all(target_vendor = "apple", feature = "metal"))]
use crate::adapter::apple::start_capture as start;

/// Refuses: only Metal has a capture to start.
#[cfg(not(all(target_vendor = "apple", feature = "metal")))]
fn start(_: &wgpu::Device, _: &Path) -> Result<(), String> {
    Err(ELSEWHERE.into())
}
