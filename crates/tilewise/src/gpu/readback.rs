//! Reading from the device, and waiting for it.

use super::bind::SharedBuffer;
use super::device::Device;
use super::outcome::Call;
#[cfg(not(target_family = "wasm"))]
use super::waiting::Asking;
use crate::host::cache::lock;
use futures_intrusive::channel::shared::{OneshotSender, oneshot_channel};
use std::ops::Range;
use std::sync::{Arc, Mutex};
use tilewise_core::{Error, Result};

/// The answer to a request to map a buffer.
pub(super) type Mapped = Result<(), wgpu::BufferAsyncError>;

/// The end of the channel by which wgpu's callback answers. Whoever takes it earlier gives the
/// answer up.
pub(super) type Owed = Mutex<Option<OneshotSender<Mapped>>>;

impl Device {
    /// Reads a range of bytes of a buffer. Does not block.
    pub(crate) async fn read(&self, buffer: &SharedBuffer, range: Range<u64>) -> Result<Vec<u8>> {
        if !buffer.usage().contains(wgpu::BufferUsages::COPY_SRC) {
            return Err(Error::Misuse(format!(
                "reading a buffer with usages {:?}: COPY_SRC is needed",
                buffer.usage()
            )));
        }
        // Copies go by words; a 16-bit tensor may begin or end inside one.
        let start = range.start / 4 * 4;
        let end = range.end.next_multiple_of(4).min(buffer.size());
        let size = end - start;
        let call = self.call();
        call.reads(buffer, start..end)?;
        let staging = self.catch(|| {
            self.create_buffer(&wgpu::BufferDescriptor {
                label: Some("tilewise readback"),
                size,
                usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
                mapped_at_creation: false,
            })
        })?;
        let mut encoder = self.encoder();
        encoder.copy_buffer_to_buffer(buffer, start, &staging, 0, size);
        let submission = self.submit(encoder)?;
        self.map(&staging, submission, call).await?;
        let view = staging.get_mapped_range(..).map_err(|error| self.failed(error))?;
        Ok(view[(range.start - start) as usize..(range.end - start) as usize].to_vec())
    }

    /// A buffer for [`cross`](Self::cross).
    pub(crate) fn fence(&self) -> Result<wgpu::Buffer> {
        self.catch(|| {
            self.create_buffer(&wgpu::BufferDescriptor {
                label: Some("tilewise fence"),
                size: 4,
                usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
                mapped_at_creation: false,
            })
        })
    }

    /// Submits the encoder, and waits for it and all earlier submissions, by mapping a buffer that
    /// the submission writes. The call ends here.
    pub(crate) async fn cross(
        &self,
        fence: &wgpu::Buffer,
        mut encoder: wgpu::CommandEncoder,
        call: Call,
    ) -> Result<()> {
        encoder.clear_buffer(fence, 0, None);
        let submission = self.submit(encoder)?;
        self.map(fence, submission, call).await
    }

    /// Waits until everything submitted so far is done. Does not block.
    ///
    /// # Errors
    /// [`DeviceLost`](crate::Error); the error of an earlier call that nobody has been told of.
    pub(crate) async fn done(&self) -> Result<()> {
        let call = self.call();
        self.cross(&self.fence()?, self.encoder(), call).await?;
        self.calls.untold()
    }

    /// Maps a buffer for reading, once the submission that writes it is done. The call ends here;
    /// this returns its error, if it has one. Does not block.
    pub(crate) async fn map(
        &self,
        staging: &wgpu::Buffer,
        submission: wgpu::SubmissionIndex,
        call: Call,
    ) -> Result<()> {
        let (sender, receiver) = oneshot_channel();
        let owed: Arc<Owed> = Arc::new(Mutex::new(Some(sender)));
        #[cfg(not(target_family = "wasm"))]
        let mut asking = Asking::new(submission, Arc::downgrade(&owed));
        // On a lost device the staging buffer may be invalid, which is an error of the device's,
        // not of the mapping's.
        self.catch_invalid(|| {
            staging.map_async(wgpu::MapMode::Read, .., move |result| {
                let sender = lock(&owed).take();
                let _ = sender.map(|sender| sender.send(result));
            })
        })?;
        let outcome = call.outcome();
        drop(call);
        #[cfg(not(target_family = "wasm"))]
        let mapped = {
            let mut answer = std::pin::pin!(receiver.receive());
            std::future::poll_fn(|context| asking.poll(self, answer.as_mut(), context)).await
        };
        // In a browser the event loop brings the news by itself.
        #[cfg(target_family = "wasm")]
        let (mapped, _) = (receiver.receive().await, submission);
        #[cfg(all(target_family = "wasm", feature = "webgpu"))]
        if !matches!(mapped, Some(Ok(()))) {
            self.loss().await;
        }
        self.alive()?;
        self.calls.settled(&outcome).await?;
        match mapped {
            Some(Ok(())) => Ok(()),
            Some(Err(error)) => Err(self.failed(error)),
            None => Err(Error::DeviceLost("a readback was dropped".into())),
        }
    }
}
