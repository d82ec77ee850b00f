//! Error scopes of browsers. Their answers come later, by promises.

use super::device::Device;
use futures_intrusive::channel::shared::oneshot_channel;
use tilewise_core::Error;
use wasm_bindgen::prelude::{Closure, JsCast, JsValue, wasm_bindgen};
use wgpu::ErrorFilter;

#[wasm_bindgen]
extern "C" {
    /// A `GPUDevice`. wgpu 30 has its error scopes too, but panics at an internal error.
    type Scopes;
    #[wasm_bindgen(method, js_name = pushErrorScope)]
    fn push(this: &Scopes, filter: &str);
    #[wasm_bindgen(method, js_name = popErrorScope)]
    fn pop(this: &Scopes) -> Promise;

    type Promise;
    #[wasm_bindgen(method)]
    fn then(this: &Promise, kept: &JsValue, broken: &JsValue);

    /// A `GPUError`, or why there is no answer.
    type Message;
    #[wasm_bindgen(method, getter)]
    fn message(this: &Message) -> String;

    #[wasm_bindgen(js_name = setTimeout)]
    fn set_timeout(call: &JsValue, milliseconds: u32);
}

/// How often, and for how many milliseconds, to look for the news that a device is lost. Firefox
/// 153 gives it up to 100 ms after the first call has failed.
const LOOKS: (usize, u32) = (20, 50);

impl Device {
    /// Runs `make`, and returns no error yet: errors come later, as answers about the call that
    /// runs.
    pub(super) fn scoped<T>(
        &self,
        filters: &[ErrorFilter],
        make: impl FnOnce() -> T,
    ) -> (T, Option<wgpu::Error>) {
        let Some(scopes) = self.as_webgpu().map(|own| own.unchecked_ref::<Scopes>()) else {
            return (make(), None);
        };
        let _call = self.call();
        for filter in filters {
            scopes.push(match filter {
                ErrorFilter::Validation => "validation",
                ErrorFilter::OutOfMemory => "out-of-memory",
                ErrorFilter::Internal => "internal",
            });
        }
        let made = make();
        for &filter in filters.iter().rev() {
            let question = self.calls.ask();
            let told = Closure::once_into_js(move |given: JsValue| {
                question.answer(error_of(filter, &given));
            });
            scopes.pop().then(&told, &told);
        }
        (made, None)
    }

    /// Waits for the news that the device is lost. It may come later than the failures that the
    /// loss causes.
    pub(super) async fn loss(&self) {
        let (times, milliseconds) = LOOKS;
        for _ in 0..times {
            if self.alive().is_err() {
                return;
            }
            let (sender, receiver) = oneshot_channel::<()>();
            set_timeout(&Closure::once_into_js(move || drop(sender)), milliseconds);
            receiver.receive().await;
        }
    }
}

fn error_of(filter: ErrorFilter, given: &JsValue) -> Option<Error> {
    if given.is_null() || given.is_undefined() {
        return None;
    }
    let words = given.unchecked_ref::<Message>().message();
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    Some(match filter {
        ErrorFilter::OutOfMemory => Error::OutOfMemory(words),
        _ => Error::device(words, None),
    })
}
