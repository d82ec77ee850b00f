//! OpenGL's own calls, which wgpu does not make: whether memory ran out.

use wgpu::hal::api::Gles;

/// Errors that OpenGL may keep, one flag for each sort.
const SORTS: usize = 8;

/// Whether memory ran out since this was asked last. wgpu makes a buffer without asking, and a
/// buffer without memory takes what is written and reads as zeros.
pub(super) fn is_out_of_memory(device: &wgpu::Device) -> bool {
    use glow::HasContext as _;
    // SAFETY: the device is only asked for its context, and nothing of it is destroyed.
    let Some(device) = (unsafe { device.as_hal::<Gles>() }) else { return false };
    let context = device.context().lock();
    // SAFETY: the context is this thread's while it is locked.
    let next = || unsafe { context.get_error() };
    // Each is told once, but for a lost context, which is told for ever.
    let told = std::iter::repeat_with(next).take_while(|error| *error != glow::NO_ERROR);
    told.take(SORTS).fold(false, |found, error| found | (error == glow::OUT_OF_MEMORY))
}
