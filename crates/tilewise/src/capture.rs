//! Metal's capture of what a context submits, for those who write kernels: `ContextOptions::metal_capture`.

use std::path::Path;

/// A capture that runs. Dropping it waits for what has been submitted, and ends it.
pub(crate) struct Capture {
    device: wgpu::Device,
}

impl Capture {
    /// Starts one into this file; where that cannot be, the log says why.
    pub(crate) fn start(device: &wgpu::Device, path: &Path) -> Option<Self> {
        let shown = path.display();
        if path.exists() {
            log::warn!(
                "{shown} is there already, and Metal writes no capture over it: delete it first (TILEWISE_METAL_CAPTURE)"
            );
        }
        match start(device, path) {
            Ok(()) => {
                log::info!(
                    "what this context submits is captured into {shown}, which is whole when the context is dropped"
                );
                Some(Capture { device: device.clone() })
            }
            Err(why) => {
                log::warn!(
                    "nothing is captured into {shown} (ContextOptions::metal_capture, TILEWISE_METAL_CAPTURE): {why}"
                );
                None
            }
        }
    }
}

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
use crate::apple::start_capture as start;

/// Elsewhere there is nothing to start.
#[cfg(not(all(target_vendor = "apple", feature = "metal")))]
fn start(_: &wgpu::Device, _: &Path) -> Result<(), String> {
    Err("only Metal captures, so that it has no effect here".into())
}
