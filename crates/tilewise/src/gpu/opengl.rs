//! A call of OpenGL that wgpu does not make: whether memory ran out.

use wgpu::hal::api::Gles;

/// The most errors that OpenGL may keep: it has one flag for each sort.
const SORTS: usize = 8;

/// Whether memory ran out since the last call. wgpu makes buffers without checking this. A buffer
/// without memory accepts writes and reads as zeros.
pub(super) fn is_out_of_memory(device: &wgpu::Device) -> bool {
    use glow::HasContext as _;
    // SAFETY: the device is only asked for its context, and nothing of it is destroyed.
    let Some(device) = (unsafe { device.as_hal::<Gles>() }) else { return false };
    let context = device.context().lock();
    // SAFETY: the context is this thread's while it is locked.
    let next = || unsafe { context.get_error() };
    // OpenGL reports each error once, except a lost context, which it reports for ever.
    let told = std::iter::repeat_with(next).take_while(|error| *error != glow::NO_ERROR);
    told.take(SORTS).fold(false, |found, error| found | (error == glow::OUT_OF_MEMORY))
}
