//! Multiplies operands that begin at odd places: vector loads would straddle rows there.

use crate::random::Random;
use tilewise::{Context, DType, Error, Gemm, Result, Tensor};
use tilewise_core::convert;
use tilewise_oracle::{Inputs, reference};

/// Rows, columns and K: each has whole tiles and an edge.
const SIZES: [usize; 3] = [77, 101, 83];

/// Computes a product of f16 whose operands begin at element 1 of storage with rows of an odd
/// length.
///
/// # Errors
/// `Data` if an element is wrong; the errors of the product.
pub(super) fn answer(context: &Context, kernel: &str, layout: &str) -> Result<String> {
    let [m, n, k] = SIZES;
    let transposed = [0, 1].map(|at| layout.as_bytes()[at] == b'T');
    let (a, a_numbers) = operand(context, [m, k], transposed[0], 1)?;
    let (b, b_numbers) = operand(context, [k, n], transposed[1], 2)?;
    let gemm = Gemm::new(&a, &b).kernel(kernel);
    let problem = gemm.problems()?.remove(0);
    let (of_a, of_b) = (problem.a, problem.b);
    debug_assert!([of_a, of_b].iter().all(|of| of.ld % 2 == 1 && of.offset % 2 == 1));
    let c = gemm.run()?.read_f32_blocking()?;
    let inputs = Inputs { a: &a_numbers, b: &b_numbers, ..Inputs::default() };
    let computed: Vec<f64> = c.into_iter().map(f64::from).collect();
    let worst = reference(&problem, &inputs).check(&computed, DType::F16);
    let worst = worst.map_err(|wrong| Error::Malformed(wrong.to_string()))?;
    Ok(format!(
        "{} elements; the largest error is {:.0}% of its bound; A from element {} in lines of {}, \
         B from {} in lines of {}",
        computed.len(),
        100.0 * worst,
        of_a.offset,
        of_a.ld,
        of_b.offset,
        of_b.ld,
    ))
}

/// A matrix inside wider storage, and the numbers of that storage.
fn operand(
    context: &Context,
    [rows, cols]: [usize; 2],
    transposed: bool,
    seed: u64,
) -> Result<(Tensor, Vec<f64>)> {
    let [lines, length] = if transposed { [cols, rows] } else { [rows, cols] };
    // The length of a row is odd, and has room for the first element, which is left out.
    let ld = (length + 1) | 1;
    let bytes = convert::encode(DType::F16, &Random::new(seed).numbers(lines * ld));
    let numbers = convert::decode_f64(DType::F16, &bytes)?;
    let view = Tensor::from_bytes(context, DType::F16, &bytes, &[lines, ld])?
        .slice(&[0..lines, 1..length + 1])?;
    Ok((if transposed { view.t() } else { view }, numbers))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_odd_and_elements_are_checked() {
        let context = Context::cpu();
        for layout in ["NN", "NT", "TN", "TT"] {
            let said = answer(&context, "simt", layout)
                .unwrap_or_else(|error| panic!("{layout}: {error}"));
            assert!(
                said.starts_with("7777 elements") && said.contains("A from element 1 in lines of"),
                "{said}"
            );
        }
    }
}
