//! A wgpu device and its queue. Their errors become the library's.

use super::outcome::{Call, Calls, Outcome};
use crate::adapter;
use std::sync::{Arc, OnceLock};
use tilewise_core::{Cause, Error, Result};

/// All kinds of errors, validation first.
const FILTERS: [wgpu::ErrorFilter; 3] =
    [wgpu::ErrorFilter::Validation, wgpu::ErrorFilter::OutOfMemory, wgpu::ErrorFilter::Internal];

/// Derefs to the wgpu device. Its own methods return what the driver reports.
pub(crate) struct Device {
    device: wgpu::Device,
    pub(crate) queue: wgpu::Queue,
    lost: Arc<OnceLock<String>>,
    pub(super) calls: Calls,
    #[cfg(not(target_family = "wasm"))]
    pub(super) waiter: super::waiting::Waiter,
}

impl std::ops::Deref for Device {
    type Target = wgpu::Device;

    fn deref(&self) -> &wgpu::Device {
        &self.device
    }
}

impl Device {
    pub(crate) fn new(device: wgpu::Device, queue: wgpu::Queue) -> Self {
        Device {
            #[cfg(not(target_family = "wasm"))]
            waiter: super::waiting::Waiter::new(&device),
            device,
            queue,
            lost: Arc::default(),
            calls: Calls::new(cfg!(all(target_family = "wasm", feature = "webgpu"))),
        }
    }

    /// wgpu's description of the adapter, with a name even if wgpu gives none.
    pub(crate) fn adapter_info(&self) -> wgpu::AdapterInfo {
        adapter::named(self.device.adapter_info())
    }

    /// Joins a given device and queue, after checking that they belong together. wgpu has no call
    /// for this, but only a queue's own device knows of the queue's finished work. In a browser
    /// nothing is checked.
    ///
    /// # Errors
    /// [`Misuse`](crate::Error) for the queue of another device; `DeviceLost` for a device that is
    /// lost or destroyed.
    pub(crate) fn joined(device: wgpu::Device, queue: wgpu::Queue) -> Result<Self> {
        let device = Device::new(device, queue);
        // In a browser everybody who asks is told of a loss, so the caller still is.
        #[cfg(target_family = "wasm")]
        device.watch();
        #[cfg(not(target_family = "wasm"))]
        {
            let done = Arc::new(OnceLock::new());
            let sender = done.clone();
            device.queue.on_submitted_work_done(move || {
                let _ = sender.set(());
            });
            device.wait()?;
            device.probe()?;
            if done.get().is_none() {
                let text = "wrong context: the queue belongs to another device than the one given";
                return Err(Error::Misuse(text.into()));
            }
        }
        Ok(device)
    }

    /// Asks to be told when the device is lost; every later call is an error then. wgpu's handler
    /// of uncaught errors stays as it is: the library catches all of its own.
    pub(crate) fn watch(&self) {
        let (lost, _calls) = (self.lost.clone(), self.calls.clone());
        self.device.set_device_lost_callback(move |reason, message| {
            let _reason = lost.get_or_init(|| format!("{reason:?}: {message}"));
            #[cfg(all(target_family = "wasm", feature = "webgpu"))]
            _calls.lose(Error::DeviceLost(_reason.clone()));
        });
    }

    /// Whether threads compile at once. wgpu gives OpenGL to one thread at a time.
    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn takes_threads(&self) -> bool {
        self.device.adapter_info().backend != wgpu::Backend::Gl
    }

    pub(crate) fn alive(&self) -> Result<()> {
        match self.lost.get() {
            Some(reason) => Err(Error::DeviceLost(reason.clone())),
            None => Ok(()),
        }
    }

    /// Like [`alive`](Self::alive), after asking the device for news: wgpu reports a loss only when
    /// polled. Until then it hands out objects that do nothing, without any error.
    pub(crate) fn still_alive(&self) -> Result<()> {
        #[cfg(not(target_family = "wasm"))]
        if let Err(error) = self.device.poll(wgpu::PollType::Poll) {
            log::debug!("poll: {error}");
        }
        self.alive()
    }

    /// Like [`alive`](Self::alive), after trying whether wgpu still makes a buffer: on a lost
    /// device it makes none, without an error. This is needed for a given device, which tells its
    /// loss only to the callback of whoever made it. Browsers make buffers on lost devices, too,
    /// but tell everybody of the loss.
    pub(crate) fn probe(&self) -> Result<()> {
        self.alive()?;
        #[cfg(not(target_family = "wasm"))]
        self.try_a_buffer();
        self.alive()
    }

    #[cfg(not(target_family = "wasm"))]
    fn try_a_buffer(&self) {
        let (probe, error) = self.scoped(&FILTERS, || {
            self.device.create_buffer(&wgpu::BufferDescriptor {
                label: Some("tilewise probe"),
                size: 4,
                usage: wgpu::BufferUsages::COPY_SRC,
                mapped_at_creation: true,
            })
        });
        if error.is_none() && probe.get_mapped_range_mut(..).is_err() {
            let _ = self.lost.set("wgpu makes no buffer on it: it is lost or destroyed".into());
        }
    }

    /// Turns an error that wgpu has returned into the library's: `DeviceLost` if a loss is behind
    /// it.
    pub(crate) fn failed(&self, error: impl std::error::Error + Send + Sync + 'static) -> Error {
        match self.probe() {
            Ok(()) => Error::device(one_line(&error), Some(Cause::new(error))),
            Err(lost) => lost,
        }
    }

    /// Runs `make`, and gives the driver's error instead if there was one. In a browser the error
    /// comes later, as one of the [call](Self::call) that runs.
    pub(crate) fn catch<T>(&self, make: impl FnOnce() -> T) -> Result<T> {
        self.attempt(make)?
    }

    /// Like [`catch`](Self::catch), for calls that allocate no memory and compile nothing. By
    /// WebGPU's specification, these have only errors of validation. One scope is enough then, and
    /// in Chromium each scope takes half the time of a submission.
    pub(crate) fn catch_invalid<T>(&self, make: impl FnOnce() -> T) -> Result<T> {
        self.filtered(&FILTERS[..1], make)?
    }

    /// Like [`catch`](Self::catch), for calls that the driver may well refuse. The inner error has
    /// the driver's words. The outer error is for a device that is lost or has no memory.
    pub(crate) fn attempt<T>(&self, make: impl FnOnce() -> T) -> Result<Result<T>> {
        self.filtered(&FILTERS, make)
    }

    fn filtered<T>(
        &self,
        filters: &[wgpu::ErrorFilter],
        make: impl FnOnce() -> T,
    ) -> Result<Result<T>> {
        self.alive()?;
        let (made, found) = self.scoped(filters, make);
        self.alive()?;
        #[cfg(all(feature = "gles", not(any(target_vendor = "apple", target_family = "wasm"))))]
        if super::opengl::is_out_of_memory(&self.device) {
            return Err(Error::OutOfMemory("OpenGL reports GL_OUT_OF_MEMORY".into()));
        }
        let Some(error) = found else { return Ok(Ok(made)) };
        let words = one_line(&error);
        if matches!(error, wgpu::Error::OutOfMemory { .. }) {
            return Err(Error::OutOfMemory(words));
        }
        self.probe()?;
        Ok(Err(Error::device(words, cause(error))))
    }

    /// Runs `make`, and also gives an error of any kind that wgpu reported meanwhile.
    #[cfg(not(all(target_family = "wasm", feature = "webgpu")))]
    fn scoped<T>(
        &self,
        _: &[wgpu::ErrorFilter],
        make: impl FnOnce() -> T,
    ) -> (T, Option<wgpu::Error>) {
        let scopes = FILTERS.map(|filter| self.device.push_error_scope(filter));
        let made = make();
        let mut found = None;
        let now = &mut std::task::Context::from_waker(std::task::Waker::noop());
        for scope in scopes.into_iter().rev() {
            let error = std::pin::pin!(scope.pop()).as_mut().poll(now);
            if let std::task::Poll::Ready(Some(error)) = error {
                found = Some(error);
            }
        }
        (made, found)
    }

    /// Whether errors of calls come later.
    pub(super) fn answers_later(&self) -> bool {
        self.calls.later()
    }

    /// The user's call that runs, or that begins here. Until this is dropped, everything that is
    /// made, submitted, read and written counts as its work.
    pub(crate) fn call(&self) -> Call {
        self.calls.join()
    }

    /// Like [`catch`](Self::catch), for objects that other calls will use, too.
    pub(crate) fn make<T>(&self, make: impl FnOnce() -> T) -> Result<(T, Outcome)> {
        let call = self.calls.begin();
        Ok((self.catch(make)?, call.outcome()))
    }

    pub(crate) fn encoder(&self) -> wgpu::CommandEncoder {
        self.device
            .create_command_encoder(&wgpu::CommandEncoderDescriptor { label: Some("tilewise") })
    }

    pub(crate) fn submit(&self, encoder: wgpu::CommandEncoder) -> Result<wgpu::SubmissionIndex> {
        let submission = self.catch_invalid(|| self.queue.submit([encoder.finish()]))?;
        self.still_alive()?;
        Ok(submission)
    }

    /// Submits a command encoder that `work` fills.
    pub(crate) fn once<T>(
        &self,
        work: impl FnOnce(&mut wgpu::CommandEncoder) -> Result<T>,
    ) -> Result<T> {
        let call = self.call();
        let mut encoder = self.encoder();
        let made = work(&mut encoder).inspect_err(|error| call.fail(error))?;
        self.submit(encoder)?;
        Ok(made)
    }
}

/// The error of wgpu behind the library's. None in a browser, where wgpu's errors do not leave
/// their thread.
fn cause(error: wgpu::Error) -> Option<Cause> {
    #[cfg(not(target_family = "wasm"))]
    return Some(Cause::new(error));
    #[cfg(target_family = "wasm")]
    {
        drop(error);
        None
    }
}

/// The words of wgpu's error, which has several lines, in one line.
fn one_line(error: &impl std::error::Error) -> String {
    error.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}
