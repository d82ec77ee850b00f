//! Estimates of the kernels in MSL, counted from their table lines. Nothing here was measured, and
//! no Mac has run it.

use std::fmt::Write;
use tilewise_core::caps::{COPIED, RECORDED};
use tilewise_core::cost::{seconds, staged};
use tilewise_core::kernel::{Access, KernelDef, Streamed, Variant};
use tilewise_core::{Caps, DType, Format, Operand, Problem, QuantFormat};
use tilewise_msl::KERNELS;

/// Numbers of one kernel for one problem.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Estimate {
    /// Bytes that cross between cores and caches or memory. Operands count as often as tiles ask
    /// for them; C counts once.
    device_bytes: u64,
    /// 8×8×8 products of simdgroup matrices; products at edges count in full.
    matrix_products: u64,
    /// Bytes of threadgroup memory of one threadgroup.
    threadgroup_bytes: u32,
    /// 32-bit registers of a thread that hold sums and operands at the same time. Addresses and
    /// counters are not included.
    registers: u32,
    /// Share of the roofline of published rates on each of [`CHIPS`]: the least time that
    /// arithmetic or memory take, divided by the time that the planner expects.
    roofline: [f64; CHIPS.len()],
}

/// The chips that are estimated for.
const CHIPS: [&str; 3] = ["Apple M1", "Apple M3", "Apple M4"];

/// The estimate of a variant in MSL for one entry of a problem, without splits of K, whether or not
/// the planner would choose it. Bytes and matrix products are those of one entry.
fn estimate(kernel: &KernelDef, variant: &Variant, problem: &Problem) -> Estimate {
    let Problem { m, n, k, .. } = *problem;
    let Variant { bm, bn, bk, .. } = *variant;
    let tiles = [m.div_ceil(bm.into()), n.div_ceil(bn.into())];
    let steps = k.div_ceil(bk.into()) * u64::from(bk) / 8;
    let read =
        bytes(problem.a.format, m * k) * tiles[1] + bytes(problem.b.format, k * n) * tiles[0];
    let (matrix_products, registers) = match variant.access {
        Access::Eights { streamed: Some(streamed) } => (0, registers(variant, problem, streamed)),
        _ => {
            let [rows, columns] = variant.sums.map(|size| size / 8);
            // A matrix of 64 elements is spread over 32 lanes.
            let registers = rows * columns * 2
                + (rows + columns) * staged(problem, &caps("Apple M4")).bytes() as u32 / 2;
            (tiles[0] * tiles[1] * u64::from(bm / 8 * (bn / 8)) * steps, registers)
        }
    };
    Estimate {
        device_bytes: read + bytes(problem.c.format, m * n),
        matrix_products,
        threadgroup_bytes: (kernel.workgroup_bytes)(variant, problem, &caps("Apple M4")),
        registers,
        roofline: CHIPS.map(|chip| {
            let caps = caps(chip);
            let rates = caps.rates();
            let once = bytes(problem.a.format, m * k)
                + bytes(problem.b.format, k * n)
                + bytes(problem.c.format, m * n);
            let published = rates.bandwidth / COPIED;
            let least =
                (problem.flops() / (rates.cores * rates.core_flops)).max(once as f64 / published);
            least / seconds(problem, &caps, variant, 1, 0.0)
        }),
    }
}

/// Registers of a mainloop for few rows or few columns.
fn registers(variant: &Variant, problem: &Problem, streamed: Streamed) -> u32 {
    let [few, lines] = streamed.few_and_many(variant.sums);
    if streamed.along_k {
        // Each line takes eight elements, or their codes, scale and bias. So does one of the few
        // lines.
        let line = if matches!(problem.b.format, Format::Quantized(..)) { 3 } else { 8 };
        few * lines + lines * line + 9
    } else {
        // Four steps of eight lines side by side, and the few elements of one step.
        few * lines + 4 * lines + few
    }
}

/// The caps of the recorded M1 under another name, by which the chip's rates are known.
fn caps(chip: &str) -> Caps {
    let (_, m1) = RECORDED.iter().find(|(name, _)| *name == "apple-m1").expect("it is recorded");
    Caps { name: chip.into(), ..m1() }
}

/// Bytes of this many elements.
fn bytes(format: Format, elements: u64) -> u64 {
    format.planes().iter().map(|plane| plane.bytes_of(format.block(), elements)).sum()
}

/// Every kernel and variant for problems that it is made for, as a table in Markdown.
pub fn report() -> String {
    let mut text = String::from(
        "# Estimates of the MSL kernels\n\n\
         Counted and modelled, not measured: none of these kernels has run on Apple's hardware. \
         The last columns are shares of a chip's roofline that the planner's cost model expects.\n\
         \n\
         | kernel | problem | device bytes | matrix products | threadgroup bytes | registers | M1 \
         | M3 | M4 |\n\
         |---|---|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    for kernel in KERNELS {
        for variant in kernel.variants {
            for (name, problem) in problems() {
                let few = problem.m.min(problem.n) <= 16;
                let for_few = matches!(variant.access, Access::Eights { .. });
                if few != for_few || (kernel.admit)(&problem, variant, &caps("Apple M4")).is_err() {
                    continue;
                }
                let estimate = estimate(kernel, variant, &problem);
                let Estimate {
                    device_bytes,
                    matrix_products,
                    threadgroup_bytes,
                    registers,
                    roofline,
                } = estimate;
                let shares = roofline.map(|share| format!("{share:.2}")).join(" | ");
                let _ = writeln!(
                    text,
                    "| {}/{} | {name} | {device_bytes} | {matrix_products} | {threadgroup_bytes} | \
                     {registers} | {shares} |",
                    kernel.name, variant.name
                );
            }
        }
    }
    text
}

/// Squares, and few rows or columns, dense and quantized.
fn problems() -> Vec<(String, Problem)> {
    let mut problems = Vec::new();
    for dtype in [DType::F32, DType::F16] {
        let dense = |m, n, k| Problem::dense(dtype, m, n, k);
        let turned = |m, n, k| Problem {
            b: Operand::packed(Format::Dense(dtype), 1, n, k).t(),
            ..dense(m, n, k)
        };
        let quantized = |m, n, k| Problem {
            b: Operand::packed(
                Format::Quantized(
                    QuantFormat::affine(4, 64, dtype).expect("it is one of the formats"),
                ),
                1,
                n,
                k,
            )
            .t(),
            ..dense(m, n, k)
        };
        let mut name = |what: &str, problem: Problem| {
            let Problem { m, n, k, .. } = problem;
            problems.push((
                format!("{m}×{n}×{k} {} {}", problem.layout(), what.replace("D", dtype.name())),
                problem,
            ));
        };
        name("D", dense(4096, 4096, 4096));
        for rows in [1, 8] {
            name("D", dense(rows, 4096, 4096));
            name("D", turned(rows, 4096, 4096));
            name("D, 4-bit weights", quantized(rows, 4096, 4096));
        }
        name("D, 4-bit weights", quantized(512, 4096, 4096));
        name("D", dense(4096, 1, 4096));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewise_core::kernel::SUBGROUP;

    #[test]
    fn numbers_of_a_tile() {
        let problem = Problem::dense(DType::F16, 128, 128, 64);
        let (gemm, variant) = (&KERNELS[0], &KERNELS[0].variants[0]);
        let estimate = estimate(gemm, variant, &problem);
        // There are four tiles of 64×64, each of which reads 64 lines of A and of B.
        assert_eq!(estimate.device_bytes, 4 * 2 * 64 * 64 * 2 + 128 * 128 * 2);
        assert_eq!(estimate.matrix_products, 16 * 16 * 8);
        assert_eq!(variant.threads, 4 * SUBGROUP);
        // There are 4×4 sums of two registers, and eight matrices of f16.
        assert_eq!(estimate.registers, 32 + 8);
    }

    #[test]
    fn nothing_beats_the_roofline() {
        for (name, problem) in problems() {
            for kernel in KERNELS {
                for variant in kernel.variants {
                    let shares = estimate(kernel, variant, &problem).roofline;
                    assert!(
                        shares.iter().all(|share| (0.0..1.0).contains(share)),
                        "{name} {shares:?}"
                    );
                }
            }
        }
    }
}
