//! Reading from the device, and waiting for it.

use super::answer::{Mapping, Sender};
use super::bind::SharedBuffer;
use super::device::Device;
use super::outcome::Call;
#[cfg(not(target_family = "wasm"))]
use super::waiting::Asking;
use std::ops::Range;
use tilewise_core::{Error, Result};

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
    /// `DeviceLost`; the error of an earlier call that nobody has been told of.
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
        let answer = Mapping::default();
        let sender = Sender(answer.clone());
        // On a lost device the staging buffer may be invalid. That is an error of the device, not
        // of the mapping.
        self.catch_invalid(|| {
            staging.map_async(wgpu::MapMode::Read, .., move |result| sender.send(result))
        })?;
        let outcome = call.outcome();
        drop(call);
        #[cfg(not(target_family = "wasm"))]
        let mut asking = Asking::new(submission);
        let mapped = std::future::poll_fn(|context| {
            #[cfg(not(target_family = "wasm"))]
            {
                asking.poll(self, &answer, context)
            }
            // In a browser the event loop brings the news by itself.
            #[cfg(target_family = "wasm")]
            {
                let _ = &submission;
                answer.poll(context)
            }
        })
        .await;
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
