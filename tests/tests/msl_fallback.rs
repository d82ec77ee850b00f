//! A device that does not compile MSL: WGSL kernels give right results for every product, the log
//! says so once, and callers can ask what runs. Vulkan's adapters are such devices if MSL is asked
//! for.

use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use tilewise::planner::Problem;
use tilewise::{Context, ContextOptions, DType, Error, Gemm, Switch, Tensor};
use tilewise_core::convert;
use tilewise_core::kernel::Language;
use tilewise_core::plan::Plan;
use tilewise_tests::{Adapter, adapters};

/// Lines that were logged as warnings and errors.
static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Log;

impl log::Log for Log {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        metadata.level() <= log::Level::Warn
    }

    fn log(&self, record: &log::Record<'_>) {
        if self.enabled(record.metadata()) && record.target().starts_with("tilewise") {
            lock(&SAID).push(record.args().to_string());
        }
    }

    fn flush(&self) {}
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The lines that `work` logs, without those of other tests.
fn said(work: impl FnOnce()) -> Vec<String> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    static LOGGER: Once = Once::new();
    let _alone = lock(&ONE_AT_A_TIME);
    LOGGER.call_once(|| {
        log::set_logger(&Log).expect("the only logger");
        log::set_max_level(log::LevelFilter::Warn);
    });
    lock(&SAID).clear();
    work();
    std::mem::take(&mut *lock(&SAID))
}

/// The adapters that compile no MSL.
fn refusing() -> Vec<&'static Adapter> {
    let all: Vec<_> =
        adapters().iter().filter(|adapter| adapter.description.backend != "metal").collect();
    if all.is_empty() {
        eprintln!("skipped: every adapter here may take MSL");
    }
    all
}

fn open(adapter: &Adapter, msl: Switch, kernel: Option<&str>) -> Context {
    let mut options = ContextOptions::default().adapter(adapter.address()).msl(msl);
    options.kernel = kernel.map(str::to_owned);
    Context::request_blocking(&options).unwrap()
}

fn in_msl(plan: &Plan) -> bool {
    plan.passes.iter().any(|pass| pass.language == Language::Msl)
}

fn tensor(context: &Context, dtype: DType, values: &[f32], shape: &[usize]) -> Tensor {
    Tensor::from_bytes(context, dtype, &convert::encode(dtype, values), shape).unwrap()
}

/// A product of integers, with the right result. B is stored along K or not, and operands are in
/// f32 or 16 bits.
struct Product {
    a: Tensor,
    b: Tensor,
    wanted: Vec<f32>,
}

impl Product {
    fn new(context: &Context, dtype: DType, [m, n, k]: [usize; 3], transposed: bool) -> Self {
        let a: Vec<f32> = (0..m * k).map(|at| (at % 7) as f32 - 3.0).collect();
        let b: Vec<f32> = (0..n * k).map(|at| (at % 5) as f32 - 2.0).collect();
        let element =
            |row: usize, col: usize| if transposed { b[col * k + row] } else { b[row * n + col] };
        let sum = |row: usize, col: usize| {
            (0..k).map(|at| a[row * k + at] * element(at, col)).sum::<f32>()
        };
        let wanted = (0..m)
            .flat_map(|row| (0..n).map(move |col| (row, col)))
            .map(|(row, col)| sum(row, col))
            .collect();
        let a = tensor(context, dtype, &a, &[m, k]);
        let b = tensor(context, dtype, &b, &if transposed { [n, k] } else { [k, n] });
        Product { a, b: if transposed { b.t() } else { b }, wanted }
    }

    fn gemm(&self) -> Gemm {
        Gemm::new(&self.a, &self.b).out_dtype(DType::F32)
    }

    fn assert_right(&self) {
        assert_eq!(self.gemm().run().unwrap().read_f32_blocking().unwrap(), self.wanted);
    }
}

fn products(context: &Context) -> Vec<Product> {
    let kinds = [
        (DType::F32, [1, 128, 256], true),
        (DType::F32, [2, 128, 256], false),
        (DType::F32, [70, 66, 40], false),
        (DType::F32, [64, 1, 96], false),
        (DType::BF16, [1, 64, 512], true),
        (DType::BF16, [33, 65, 17], true),
    ];
    kinds.map(|(dtype, size, transposed)| Product::new(context, dtype, size, transposed)).into()
}

#[test]
fn every_product_comes_out_right_and_the_log_says_it_once() {
    for adapter in refusing() {
        let lines = said(|| {
            let context = open(adapter, Switch::On, None);
            let planned = products(&context)
                .iter()
                .filter(|product| in_msl(&product.gemm().plans().unwrap()[0]))
                .count();
            assert!(planned >= 3, "only {planned} of the products would be in MSL");
            std::thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| products(&context).iter().for_each(Product::assert_right));
                }
            });
            for product in products(&context) {
                let plan = product.gemm().plans().unwrap().remove(0);
                assert!(!in_msl(&plan), "{:?}", plan.choice);
                product.assert_right();
            }
            context.wait_blocking().unwrap();
        });
        assert_eq!(lines.len(), 1, "{lines:#?}");
        assert!(
            lines[0].contains("the MSL of msl-") && lines[0].contains(adapter.name()),
            "{lines:?}"
        );
    }
}

#[test]
fn whoever_asks_learns_what_runs() {
    for adapter in refusing() {
        said(|| {
            let context = open(adapter, Switch::On, None);
            let product = Product::new(&context, DType::F32, [1, 128, 256], true);
            let gemm = product.gemm();
            let first = |text: String| {
                text.lines().find(|line| line.starts_with("chosen")).unwrap().to_owned()
            };
            let before = gemm.explain().unwrap();
            assert!(
                !before.contains("without MSL") && first(before.clone()).contains("msl-"),
                "{before}"
            );
            context.warm_up_problems(&gemm.problems().unwrap()).unwrap();
            let after = gemm.explain().unwrap();
            assert!(
                !first(after.clone()).contains("msl-") && after.contains("  compiled"),
                "{after}"
            );
            let line = after.lines().find(|line| line.starts_with("without MSL: ")).expect(&after);
            assert!(
                line.contains("is refused by") && line.contains(adapter.description.backend),
                "{line}"
            );
            let (chosen, choices) =
                (gemm.plans().unwrap().remove(0).choice.unwrap(), gemm.choices().unwrap());
            assert!(choices.iter().any(|choice| choice.to_string() == chosen.to_string()));
            // A kernel that was refused is not a choice any more.
            let refused = line.split("the MSL of ").nth(1).unwrap().split(' ').next().unwrap();
            assert!(choices.iter().all(|choice| choice.to_string() != refused), "{refused}");
            product.assert_right();
        });
    }
}

#[test]
fn a_named_kernel_is_an_error() {
    for adapter in refusing() {
        said(|| {
            let context = open(adapter, Switch::On, None);
            let product = Product::new(&context, DType::F32, [70, 66, 40], false);
            for name in ["msl-gemm/64x64x16", "msl-gemm/64x64x16+k2", "msl-gemm"] {
                // The second time, the refusal is already known.
                for _ in 0..2 {
                    let error = product.gemm().kernel(name).run().unwrap_err();
                    let refused = matches!(
                        &error,
                        Error::DeviceLimit(why) if why.contains("the MSL of msl-gemm")
                    );
                    assert!(refused, "{name}: {error}");
                }
                assert!(
                    matches!(product.gemm().kernel(name).explain(), Err(Error::DeviceLimit(_))),
                    "{name}"
                );
            }
            let error = product.gemm().kernel("msl-gemm/1x2x3").run().unwrap_err();
            let unknown = "no kernel is named \"msl-gemm/1x2x3\"";
            assert!(matches!(&error, Error::Misuse(text) if text.contains(unknown)), "{error}");
            product.gemm().kernel("naive").run().unwrap();
            product.assert_right();

            let context = open(adapter, Switch::On, Some("msl-gemm/32x32x16"));
            let product = Product::new(&context, DType::F32, [70, 66, 40], false);
            for _ in 0..2 {
                let error = product.gemm().run().unwrap_err();
                let words = ["TILEWISE_KERNEL", "msl-gemm/32x32x16", "is refused by"];
                assert!(matches!(&error, Error::DeviceLimit(_)), "{error}");
                assert!(words.iter().all(|word| error.to_string().contains(word)), "{error}");
            }
        });
    }
}

/// An error of a lost device does not count against MSL.
#[test]
fn a_lost_device_is_no_refusal() {
    for adapter in refusing() {
        let lines = said(|| {
            let context = open(adapter, Switch::On, None);
            let product = Product::new(&context, DType::F32, [1, 128, 256], true);
            context.device().unwrap().destroy();
            let error = product.gemm().run().unwrap_err();
            assert!(matches!(error, Error::DeviceLost(_)), "{error}");
            let error = context.warm_up_problems(&product.gemm().problems().unwrap()).unwrap_err();
            assert!(matches!(error, Error::DeviceLost(_)), "{error}");
        });
        assert!(lines.iter().all(|line| !line.contains("is refused by")), "{lines:?}");
    }
}

#[test]
fn the_tuner_times_what_runs() {
    for adapter in refusing() {
        let lines = said(|| {
            let context = open(adapter, Switch::On, None);
            let problem = Problem::dense(DType::F32, 1, 64, 128);
            let tuned = context.tune_blocking(&problem).unwrap();
            assert!(
                !tuned.times.is_empty()
                    && tuned.times.iter().all(|trial| !trial.name.contains("msl-")),
                "{tuned}"
            );
            let product = Product::new(&context, DType::F32, [1, 64, 128], false);
            // Only kernels without any hope have not been tried.
            let choices = product.gemm().choices().unwrap();
            assert!(
                choices
                    .iter()
                    .take(tuned.times.len())
                    .all(|choice| !choice.kernel.starts_with("msl-"))
            );
            product.assert_right();
        });
        let refused = lines.iter().filter(|line| line.contains("is refused by")).count();
        assert_eq!(refused, 1, "{lines:#?}");
    }
}

#[test]
fn no_kernel_in_msl_is_considered_unasked() {
    for adapter in refusing() {
        let lines = said(|| {
            for msl in [Switch::Auto, Switch::Off] {
                let context = open(adapter, msl, None);
                assert!(
                    context
                        .library()
                        .kernels
                        .iter()
                        .all(|kernel| kernel.kit.language == Language::Wgsl)
                );
                let product = Product::new(&context, DType::F32, [1, 128, 256], true);
                let text = product.gemm().explain().unwrap();
                assert!(!text.contains("msl") && !text.contains("MSL"), "{text}");
                assert!(
                    product
                        .gemm()
                        .choices()
                        .unwrap()
                        .iter()
                        .all(|choice| !choice.kernel.starts_with("msl-"))
                );
                let error = product.gemm().kernel("msl-gemm").run().unwrap_err();
                let how = |why: &str| why.contains("off here") && why.contains("TILEWISE_MSL=on");
                assert!(matches!(&error, Error::DeviceLimit(why) if how(why)), "{error}");
                let error = product.gemm().kernel("msl-gemm/1x2x3").run().unwrap_err();
                let unknown = "no kernel is named \"msl-gemm/1x2x3\"";
                assert!(matches!(&error, Error::Misuse(text) if text.contains(unknown)), "{error}");
                product.assert_right();
            }
        });
        assert!(lines.is_empty(), "{lines:?}");
        assert!(!adapter.description.msl);
    }
}

#[test]
fn a_capture_elsewhere_than_on_metal_is_said_to_have_no_effect() {
    let path = std::env::temp_dir().join("tilewise-never-written.gputrace");
    let lines = said(|| {
        for adapter in refusing() {
            let options = ContextOptions::default().adapter(adapter.address()).metal_capture(&path);
            let context = Context::request_blocking(&options).unwrap();
            Product::new(&context, DType::F32, [3, 5, 7], false).assert_right();
        }
    });
    // Once in a process, however many contexts ask.
    assert_eq!(lines.len(), usize::from(!refusing().is_empty()), "{lines:?}");
    assert!(
        lines
            .iter()
            .all(|line| line.contains("no effect") && line.contains("TILEWISE_METAL_CAPTURE")),
        "{lines:?}"
    );
    assert!(!path.exists());
}
