//! The host's clock.

#[cfg(target_family = "wasm")]
use tilewise_core::Error;
use tilewise_core::Result;

/// The host's clock, which wasm32-unknown-unknown does not have.
pub(crate) struct Clock(#[cfg(not(target_family = "wasm"))] std::time::Instant);

impl Clock {
    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn start() -> Result<Self> {
        Ok(Clock(std::time::Instant::now()))
    }

    #[cfg(target_family = "wasm")]
    pub(crate) fn start() -> Result<Self> {
        Err(Error::MissingFeature(
            "timing without timestamp queries needs a clock, and there is none here".into(),
        ))
    }

    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn seconds(&self) -> f64 {
        self.0.elapsed().as_secs_f64()
    }

    #[cfg(target_family = "wasm")]
    pub(crate) fn seconds(&self) -> f64 {
        0.0
    }
}
