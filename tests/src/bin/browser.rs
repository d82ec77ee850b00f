//! Exports the suite for browsers (`tilewise_tests::browser`) to a page, which calls `run`.

/// Functions that a page calls, and functions that it provides.
#[cfg(target_family = "wasm")]
pub mod page {
    use wasm_bindgen::prelude::wasm_bindgen;

    #[wasm_bindgen]
    extern "C" {
        async fn say(event: String);
        fn complaints() -> String;
        #[wasm_bindgen(js_name = say)]
        fn last_words(event: String) -> wasm_bindgen::JsValue;
    }

    /// Runs the suite.
    #[wasm_bindgen]
    pub async fn run(turn: Option<usize>, only: String) {
        std::panic::set_hook(Box::new(|panic| drop(last_words(format!("died {panic}")))));
        let ran = tilewise_tests::browser::run(turn, &only, say, complaints).await;
        if let Err(error) = ran {
            say(format!("died {error}")).await;
        }
    }
}

fn main() {
    if cfg!(not(target_family = "wasm")) {
        println!("This is for browsers: `cargo xtask browser` runs it in one.");
    }
}
