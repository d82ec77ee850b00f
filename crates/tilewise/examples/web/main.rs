//! A product in a browser; `README.md` says how the page is built.

#[cfg(target_family = "wasm")]
use {
    tilewise::{Context, ContextOptions, Tensor},
    wasm_bindgen::prelude::{JsError, wasm_bindgen},
};

/// Multiplies two matrices on the page's GPU, on the named adapter, or on the CPU if the page has
/// no GPU.
#[cfg(target_family = "wasm")]
#[wasm_bindgen]
pub async fn product(adapter: Option<String>) -> Result<String, JsError> {
    let mut options = ContextOptions::default();
    options.adapter = adapter;
    let ctx = Context::request(&options).await?;
    let a = Tensor::upload(&ctx, &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3])?;
    let b = Tensor::upload(&ctx, &[7.0f32, 8.0, 9.0, 10.0, 11.0, 12.0], &[3, 2])?;
    let c = ctx.matmul(&a, &b)?;
    let numbers = c.read::<f32>().await?;
    Ok(format!("C = {numbers:?} on {} ({})", ctx.adapter_name(), ctx.backend_name()))
}

fn main() {
    if cfg!(not(target_family = "wasm")) {
        println!("This is for browsers: see crates/tilewise/examples/web/README.md.");
    }
}
