//! Calls of Metal that wgpu does not pass on: starting a capture into a file, and asking the
//! compiler for its words.

use objc2_foundation::{NSError, NSString, NSURL};
use objc2_metal::{MTLCaptureDescriptor, MTLCaptureDestination, MTLCaptureManager, MTLDevice};
use std::path::Path;

/// Whether Metal's compiler takes a text in MSL, with the options that wgpu gives.
///
/// # Errors
/// The compiler's words.
pub(crate) fn compile(device: &wgpu::Device, text: &str) -> Result<(), String> {
    // SAFETY: the device is only asked for a library, and nothing of it is destroyed.
    let device =
        unsafe { device.as_hal::<wgpu::hal::api::Metal>() }.ok_or("the device is not Metal's")?;
    let library =
        device.raw_device().newLibraryWithSource_options_error(&NSString::from_str(text), None);
    library.map(drop).map_err(|error| said(&error))
}

/// The version of Metal's language, as `__METAL_VERSION__` gives it. Versions that make no
/// difference to kernels count as the version below them.
pub(crate) fn language_version(device: &wgpu::Device) -> Option<u32> {
    let reaches = |version: &u32| {
        compile(
            device,
            &format!(
                "#if __METAL_VERSION__ < {version}\n#error older\n#endif\nkernel \
                                  void probe() {{}}\n"
            ),
        )
        .is_ok()
    };
    [400, 320, 310, 300, 240, 230].into_iter().find(reaches)
}

/// Captures what is submitted to the device from now on into a trace document, until wgpu's
/// `stop_graphics_debugger_capture`.
///
/// # Errors
/// The reason: the device is not Metal's, the variable MTL_CAPTURE_ENABLED is not 1, another
/// capture runs, or the file exists already or cannot be made.
pub(crate) fn start_capture(device: &wgpu::Device, path: &Path) -> Result<(), String> {
    // SAFETY: the device is only named to the capture manager, and nothing of it is destroyed.
    let device =
        unsafe { device.as_hal::<wgpu::hal::api::Metal>() }.ok_or("the device is not Metal's")?;
    if path.exists() {
        return Err("it is there already, and Metal writes over nothing: delete it first".into());
    }
    let path = path.to_str().ok_or("its path is not UTF-8")?;
    // SAFETY: the call has no conditions of its own. It is marked unsafe because the whole process
    // shares the object, which is used here in one call.
    let manager = unsafe { MTLCaptureManager::sharedCaptureManager() };
    if !manager.supportsDestination(MTLCaptureDestination::GPUTraceDocument) {
        return Err("Metal writes traces only with MTL_CAPTURE_ENABLED=1 in the environment".into());
    }
    let descriptor = MTLCaptureDescriptor::new();
    // SAFETY: a device is one of the objects that can be captured.
    unsafe { descriptor.setCaptureObject(Some(device.raw_device().as_ref())) };
    descriptor.setDestination(MTLCaptureDestination::GPUTraceDocument);
    descriptor.setOutputURL(Some(&NSURL::fileURLWithPath(&NSString::from_str(path))));
    manager.startCaptureWithDescriptor_error(&descriptor).map_err(|error| said(&error))
}

/// The error's description in one line.
fn said(error: &NSError) -> String {
    error.localizedDescription().to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}
