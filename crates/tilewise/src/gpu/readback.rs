//! From the device to the host.

use super::answer::{Mapping, Sender};
use super::device::Device;
#[cfg(not(target_family = "wasm"))]
use super::waiting::Asking;
use std::ops::Range;
use tilewise_core::{Error, Result};

impl Device {
    /// A range of bytes of a buffer. Does not block.
    pub(crate) async fn read(&self, buffer: &wgpu::Buffer, range: Range<u64>) -> Result<Vec<u8>> {
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
        self.map(&staging, submission).await?;
        let view = staging.get_mapped_range(..).map_err(|error| self.failed(error))?;
        Ok(view[(range.start - start) as usize..(range.end - start) as usize].to_vec())
    }

    /// Maps a buffer for reading that this submission writes, once that is done. Does not block.
    pub(crate) async fn map(
        &self,
        staging: &wgpu::Buffer,
        submission: wgpu::SubmissionIndex,
    ) -> Result<()> {
        let answer = Mapping::default();
        let sender = Sender(answer.clone());
        // On a lost device the staging buffer may be invalid, which is an error of the device's,
        // not of the mapping's.
        self.catch(|| {
            staging.map_async(wgpu::MapMode::Read, .., move |result| sender.send(result))
        })?;
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
        self.alive()?;
        match mapped {
            Some(Ok(())) => Ok(()),
            Some(Err(error)) => Err(self.failed(error)),
            None => Err(Error::DeviceLost("a readback was dropped".into())),
        }
    }
}
