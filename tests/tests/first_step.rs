//! Measures how soon a program that has just started gets its first results from a software device,
//! whose driver compiles each text for long. The program takes the first step of training a network
//! of two layers.
//!
//! The step runs in a process of its own. Nothing is compiled before, and the driver has the
//! settings that users have and the suite has not.

use std::process::Command;
use std::time::Duration;
use tilewise::{Activation, Call, Context, ContextOptions, DType, Gemm, Kernel, Result, Tensor};
use tilewise_tests::adapters;

/// CPU time that the step may take. Most of it is the driver's compiling. The wall clock would
/// count other programs too; on an idle machine it shows no more than this, because some thread
/// computes all the time.
const MOST: Duration = Duration::from_secs(3);

const ADAPTER: &str = "TILEWISE_FIRST_STEP";
const SAYS: &str = "CPU milliseconds of the first step: ";

#[test]
fn the_first_step_of_training_comes_soon() {
    if let Ok(adapter) = std::env::var(ADAPTER) {
        return measure(&adapter);
    }
    let lavapipe = adapters().iter().find(|adapter| adapter.name().contains("llvmpipe"));
    if lavapipe.is_none() || !cfg!(target_os = "linux") {
        eprintln!("skipped: no lavapipe here");
        return;
    };
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "the_first_step_of_training_comes_soon", "--nocapture"]);
    child.env(ADAPTER, "vulkan:llvmpipe").env("MESA_SHADER_CACHE_DISABLE", "true");
    for variable in ["LP_NATIVE_VECTOR_WIDTH", "GALLIVM_PERF", "TILEWISE_KERNEL"] {
        child.env_remove(variable);
    }
    let output = child.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let (_, rest) = text.split_once(SAYS).unwrap_or_else(|| panic!("it did not say: {text}"));
    let taken = rest.lines().next().unwrap_or_default().trim().parse().unwrap();
    let taken = Duration::from_millis(taken);
    assert!(taken <= MOST, "the first step took {taken:?} of the CPU, at most {MOST:?}\n{text}");
}

fn measure(adapter: &str) {
    let options = ContextOptions::default().adapter(adapter);
    let context = Context::request_blocking(&options).unwrap();
    let mut net = Net::new(&context).unwrap();
    let before = cpu_time();
    net.step().unwrap();
    let first = net.loss().unwrap();
    println!("{SAYS}{}", (cpu_time() - before).as_millis());
    // The step is one of training: the loss falls.
    (0..20).for_each(|_| net.step().unwrap());
    let last = net.loss().unwrap();
    assert!(last < 0.9 * first, "from {first} to {last}");
}

/// CPU time of this process, in user mode and in the system.
fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let (_, fields) = stat.rsplit_once(')').unwrap();
    let ticks = |index| fields.split_whitespace().nth(index).unwrap().parse::<u64>().unwrap();
    // Fields 14 and 15, counted from the third one after the name; a tick is a hundredth of a
    // second on every Linux.
    Duration::from_millis(10 * (ticks(11) + ticks(12)))
}

const ROWS: usize = 64;
const RATE: f32 = 0.5;

/// The shapes are 32 inputs, 64 hidden numbers and 10 classes for each row.
struct Net {
    x: Tensor,
    labels: Tensor,
    ones: Tensor,
    w1: Tensor,
    b1: Tensor,
    w2: Tensor,
    b2: Tensor,
    y: Option<Tensor>,
    softmax: Kernel,
    mask: Kernel,
}

impl Net {
    fn new(context: &Context) -> Result<Self> {
        let mut state = 1u32;
        let mut random = |shape: &[usize], scale: f32| {
            let count = shape.iter().product::<usize>();
            let values = (0..count).map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                scale * (f64::from(state) / f64::from(u32::MAX) - 0.5) as f32
            });
            Tensor::upload(context, &values.collect::<Vec<_>>(), shape)
        };
        let softmax = Kernel::new("softmax minus labels").inputs(["y", "labels"]).outputs(["g"]);
        let mask = Kernel::new("relu backwards").inputs(["g", "h"]).outputs(["out"]);
        Ok(Net {
            x: random(&[ROWS, 32], 2.0)?,
            labels: Tensor::upload(
                context,
                &(0..ROWS as u32).map(|row| row % 10).collect::<Vec<_>>(),
                &[ROWS],
            )?,
            ones: Tensor::upload(context, &[1.0f32; ROWS], &[1, ROWS])?,
            w1: random(&[32, 64], 0.5)?,
            b1: random(&[1, 64], 0.1)?,
            w2: random(&[64, 10], 0.5)?,
            b2: random(&[1, 10], 0.1)?,
            y: None,
            softmax: softmax.source(
                "let row = global_id.x;
                var most = y[row * 10u];
                for (var i = 1u; i < 10u; i++) { most = max(most, y[row * 10u + i]); }
                var sum = 0.0;
                for (var i = 0u; i < 10u; i++) { sum += exp(y[row * 10u + i] - most); }
                for (var i = 0u; i < 10u; i++) {
                    let p = exp(y[row * 10u + i] - most) / sum;
                    g[row * 10u + i] = (p - f32(i == labels[row])) / f32(grid.x);
                }",
            ),
            mask: mask.source("let i = global_id.x; out[i] = select(0.0, g[i], h[i] > 0.0);"),
        })
    }

    fn step(&mut self) -> Result<()> {
        let context = self.x.context();
        let row = |b: &Tensor| b.reshape(&[b.elem_count()]);
        let (b1, b2) = (row(&self.b1)?, row(&self.b2)?);
        let h = Gemm::new(&self.x, &self.w1).bias(&b1).activation(Activation::Relu).run()?;
        let y = Gemm::new(&h, &self.w2).bias(&b2).run()?;
        let call = Call::new(context).input(&y).input(&self.labels);
        let call = call.output(DType::F32, &[ROWS, 10]).grid([ROWS as u32, 1, 1]);
        let gy = self.softmax.run(&call)?.remove(0);
        let gh = Gemm::new(&gy, self.w2.t()).run()?;
        let call = Call::new(context).input(&gh).input(&h).output(DType::F32, &[ROWS, 64]);
        let gh = self.mask.run(&call.grid([ROWS as u32 * 64, 1, 1]))?.remove(0);
        for (left, gradient, weights) in [
            (&h.t(), &gy, &self.w2),
            (&self.ones, &gy, &self.b2),
            (&self.x.t(), &gh, &self.w1),
            (&self.ones, &gh, &self.b1),
        ] {
            Gemm::new(left, gradient).alpha(-RATE).beta(1.0).run_into(weights)?;
        }
        self.y = Some(y);
        Ok(())
    }

    /// Cross-entropy before the last step.
    fn loss(&self) -> Result<f64> {
        let y = self.y.as_ref().expect("a step was taken").read_f32_blocking()?;
        let row = |(at, y): (usize, &[f32])| {
            let sum: f64 = y.iter().map(|&y| f64::from(y).exp()).sum();
            sum.ln() - f64::from(y[at % 10])
        };
        Ok(y.chunks(10).enumerate().map(row).sum::<f64>() / ROWS as f64)
    }
}
