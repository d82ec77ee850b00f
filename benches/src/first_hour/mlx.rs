//! Times MLX on the same machine, if Python has it.

use super::Figures;
use serde::Deserialize;
use std::process::{Command, Output};

/// The script, which takes rows and width, and prints [`Printed`].
const SCRIPT: &str = include_str!("../../peers/mlx_bench.py");

#[derive(Deserialize)]
struct Printed {
    version: String,
    device: String,
    /// Median, least and greatest seconds.
    seconds: [f64; 3],
}

/// Times `mlx.core.quantized_matmul` of f16 rows and square 4-bit weights.
///
/// # Errors
/// There is no Python or no MLX, or the script says what went wrong.
pub(super) fn answer(rows: usize, width: usize) -> Result<Figures, String> {
    python(&["-c", "import mlx.core"]).map_err(|why| format!("python3 has no mlx: {why}"))?;
    let [rows_text, width_text] = [rows, width].map(|size| size.to_string());
    let output = python(&["-c", SCRIPT, &rows_text, &width_text])?;
    let printed =
        serde_json::from_slice(&output.stdout).map_err(|error| format!("of mlx: {error}"))?;
    let Printed { version, device, seconds: [median, least, greatest] } = printed;
    if median <= 0.0 {
        return Err("mlx's products are too short for its clock".into());
    }
    let [m, n] = [rows, width].map(|size| size as f64);
    // A weight takes half a byte, and 64 weights share two numbers in f16.
    let bytes = 2.0 * 2.0 * m * n + n * n * (0.5 + 4.0 / 64.0);
    Ok(Figures {
        ms: median * 1e3,
        spread: (greatest - least) / median,
        tflops: 2.0 * m * n * n / median * 1e-12,
        gbs: Some(bytes / median * 1e-9),
        kernel: format!("mlx {version} on {device}"),
        method: "host's clock, per product of many that are evaluated together".into(),
        ..Figures::default()
    })
}

/// The output of Python, or the last line of its complaint.
fn python(args: &[&str]) -> Result<Output, String> {
    let output =
        Command::new("python3").args(args).output().map_err(|error| format!("python3: {error}"))?;
    if output.status.success() {
        return Ok(output);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(said.lines().last().unwrap_or("it fails without a word").to_owned())
}
