//! The tuner, and other things that override the planner: winners in later calls, contexts and
//! processes, damaged files, and the environment.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tilewise::{
    Activation, Axis, Context, ContextOptions, DType, Error, Gemm, QuantFormat, Switch, Tensor,
};
use tilewise_core::{Bias, Epilogue, Format, Grouping, Operand, Problem};
use tilewise_tests::{Adapter, adapters};

/// A product for which there are few kernels, because its K is too small for splits.
const SIZE: [usize; 3] = [60, 64, 48];

/// An empty folder for a test.
fn folder(name: &str) -> PathBuf {
    let folder =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("tuner-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

/// A context that keeps its winners in the folder.
fn open(adapter: &Adapter, folder: &Path) -> Context {
    let options = ContextOptions::default().adapter(adapter.address()).tuned(folder.to_path_buf());
    Context::request_blocking(&options).unwrap()
}

/// Lavapipe, else the first adapter, for tests that do not depend on the adapter.
fn any() -> Option<&'static Adapter> {
    let lavapipe = adapters().iter().find(|adapter| adapter.name().contains("llvmpipe"));
    let found = lavapipe.or(adapters().first());
    if found.is_none() {
        eprintln!("skipped: tuning: there is no adapter");
    }
    found
}

fn dense(m: u64, n: u64, k: u64) -> Problem {
    Problem::dense(DType::F32, m, n, k)
}

/// The kernel that computes a dense f32 product of packed matrices, and the explanation.
fn chosen(context: &Context, [m, n, k]: [usize; 3]) -> (String, String) {
    let zeros = |shape: [usize; 2]| Tensor::zeros(context, DType::F32, &shape).unwrap();
    let (a, b) = (zeros([m, k]), zeros([k, n]));
    let product = Gemm::new(&a, &b);
    product.run().unwrap();
    (product.plans().unwrap().remove(0).choice.unwrap().to_string(), product.explain().unwrap())
}

/// The file of winners in the folder.
fn file(folder: &Path) -> PathBuf {
    let all = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let is_ours = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with("tuned");
    let is_lock = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "lock");
    let files: Vec<_> = all.filter(|path| is_ours(path) && !is_lock(path)).collect();
    assert_eq!(files.len(), 1, "one file and no drafts: {files:?}");
    files[0].clone()
}

/// A file with the header of `text`, these lines, and the right checksum: FNV-1a.
fn forged(text: &str, lines: &str) -> String {
    let body = format!("{}\n{lines}", text.lines().next().unwrap());
    let sum = body.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    format!("{body}checksum\t{sum:016x}\n")
}

/// The winner is used by the next call, by a context that is opened later, and for the rest of its
/// class. A context without the file does not use it.
#[test]
fn winners_are_used() {
    if let Some(adapter) = any() {
        let folder = folder("used");
        let context = open(adapter, &folder);
        let (own, _) = chosen(&context, SIZE);
        let tuned = context.tune_blocking(&dense(60, 64, 48)).unwrap();
        assert_eq!(tuned.file, Some(file(&folder)));
        assert!(
            tuned.times.len() > 1 && tuned.times.is_sorted_by_key(|trial| trial.seconds),
            "{tuned}"
        );
        assert_eq!(
            tuned.times.iter().filter(|trial| trial.name == format!("planner: {own}")).count(),
            1,
            "{tuned}"
        );
        let winner = tuned.winner.unwrap_or(own.clone());
        // The plan's name for a kernel leaves `+k1` out.
        let name = |kernel: &str| kernel.trim_end_matches("+k1").to_owned();
        assert_eq!(chosen(&context, SIZE).0, name(&winner));
        assert_eq!(chosen(&open(adapter, &folder), SIZE).0, name(&winner));

        // Another kernel that might have won.
        let text = std::fs::read_to_string(file(&folder)).unwrap();
        let other = if own.starts_with("naive") { "simt/32x32x32+k1" } else { "naive/8x32+k1" };
        std::fs::write(file(&folder), forged(&text, &format!("{}\t{other}\n", tuned.class)))
            .unwrap();
        let context = open(adapter, &folder);
        let (kernel, explained) = chosen(&context, SIZE);
        assert_eq!(kernel, name(other), "{}", adapter.name());
        assert!(explained.contains("forced by the tuner"), "{explained}");
        assert_eq!(chosen(&context, [58, 64, 48]).0, name(other), "one class");
        let (kernel, explained) = chosen(&context, [60, 66, 48]);
        assert!(
            kernel != name(other) && !explained.contains("forced"),
            "another class: {explained}"
        );
        assert_eq!(chosen(&adapter.context, SIZE).0, own);
        // A kernel that the caller names comes first.
        let a = Tensor::zeros(&context, DType::F32, &[64, 64]).unwrap();
        let gemm = Gemm::new(&a, &a).kernel("simt/64x64x16");
        assert!(gemm.explain().unwrap().contains("forced by the call"));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}

/// Winners as text are those of the file. A context without files takes them, and no others.
#[test]
fn winners_as_text() {
    let Some(adapter) = any() else { return };
    let folder = folder("text");
    let context = open(adapter, &folder);
    let (own, _) = chosen(&context, SIZE);
    let class = context.tune_blocking(&dense(60, 64, 48)).unwrap().class;
    let text = context.tuned_text();
    assert_eq!(text, std::fs::read_to_string(file(&folder)).unwrap());
    std::fs::remove_dir_all(&folder).unwrap();

    let later = adapter.another();
    let nothing = later.tuned_text();
    later.add_tuned(&nothing).unwrap();
    assert_eq!(chosen(&later, SIZE).0, own, "planned before winners come");
    for wrong in [&text[1..], &text[..text.len() - 1], "", &Context::cpu().tuned_text()] {
        let refused = later.add_tuned(wrong);
        assert!(matches!(refused, Err(Error::Misuse(_))), "{wrong:?}: {refused:?}");
        assert_eq!(later.tuned_text(), nothing);
    }
    let (winner, name) = match own.starts_with("naive") {
        true => ("simt/32x32x32+k1", "simt/32x32x32"),
        false => ("naive/8x32+k1", "naive/8x32"),
    };
    later.add_tuned(&forged(&text, &format!("{class}\t{winner}\n"))).unwrap();
    assert_eq!(chosen(&later, SIZE).0, name);
    // New text replaces classes one by one.
    later.add_tuned(&nothing).unwrap();
    assert_eq!(chosen(&later, SIZE).0, name);
    later.add_tuned(&forged(&text, &format!("{class}\tplanner\n"))).unwrap();
    assert_eq!(chosen(&later, SIZE).0, own);
}

/// If a winner does not admit a problem of its class, or does not exist, the planner chooses.
#[test]
fn winners_that_do_not_fit() {
    let Some(adapter) = any() else { return };
    let folder = folder("fit");
    let class = open(adapter, &folder).tune_blocking(&dense(60, 64, 48)).unwrap().class;
    let text = std::fs::read_to_string(file(&folder)).unwrap();
    let (own, _) = chosen(&adapter.context, SIZE);
    for winner in ["gemv/1x4+k1", "none/such", "simt/1x1x1", "simt/64x64x16+k4096", "planner"] {
        std::fs::write(file(&folder), forged(&text, &format!("{class}\t{winner}\n"))).unwrap();
        let kernel = chosen(&open(adapter, &folder), SIZE).0;
        let clamped = winner.contains("+k4096") && kernel.starts_with("simt/64x64x16");
        assert!(kernel == own || clamped, "{winner}: {kernel}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Every kind of product is timed, on operands that are not the caller's. The device takes small
/// tiles only, which compile fast.
#[test]
fn every_kind_of_product() {
    let Some(adapter) = any() else { return };
    let context = adapter.with_limits(|limits| limits.max_compute_invocations_per_workgroup = 64);
    let packed =
        |dtype, entries, rows, cols| Operand::packed(Format::Dense(dtype), entries, rows, cols);
    let half = |dtype| Problem::dense(dtype, 31, 40, 64);
    let quantized = Operand::packed(
        Format::Quantized(QuantFormat::affine(4, 64, DType::F16).unwrap()),
        1,
        40,
        64,
    )
    .t();
    let far = |operand: Operand| Operand {
        offset: 1 << 20 | 4,
        len: (1 << 20) + 4 + operand.len,
        ..operand
    };
    let epilogue = Epilogue {
        alpha: 1e30,
        beta: 2.0,
        bias: Some(Bias { axis: Axis::N, operand: far(packed(DType::BF16, 1, 40, 1)) }),
        activation: Activation::Gelu,
        residual: Some(far(packed(DType::F16, 1, 31, 40))),
        gated: false,
    };
    let with_epilogue = Problem { epilogue, a: far(half(DType::F32).a), ..half(DType::F32) };
    let batched = Problem {
        batch: 3,
        a: packed(DType::F32, 3, 31, 64),
        b: Operand { batch_stride: 0, ..packed(DType::F32, 1, 64, 40) },
        c: packed(DType::F32, 3, 31, 40),
        ..half(DType::F32)
    };
    let grouped = Problem {
        grouping: Grouping::RaggedM { groups: 3, first: 0, offset: 0, expected: None },
        b: packed(DType::F16, 3, 64, 40),
        ..half(DType::F16)
    };
    let problems = [
        half(DType::F16),
        half(DType::BF16),
        Problem { b: quantized, ..half(DType::F16) },
        with_epilogue,
        batched,
        grouped,
        dense(1, 512, 512),
        dense(65, 65, 128),
        dense(3, 5, 0),
    ];
    for problem in problems {
        let tuned =
            context.tune_blocking(&problem).unwrap_or_else(|error| panic!("{problem:?}: {error}"));
        let whole =
            tuned.times.iter().all(|trial| trial.seconds.is_finite() && trial.seconds >= 0.0);
        assert!(tuned.times.len() > 1 && whole && tuned.file.is_none(), "{problem:?}\n{tuned}");
        assert_eq!(
            tuned.times.iter().filter(|trial| trial.name.starts_with("planner: ")).count(),
            1,
            "{tuned}"
        );
    }
}

/// If there is nothing to choose, nothing is timed. A product that cannot be computed is refused.
#[test]
fn nothing_to_tune() {
    for context in adapters().iter().map(Adapter::another).chain([Context::cpu()]) {
        let tuned = context.tune_blocking(&dense(0, 5, 3)).unwrap();
        assert!(tuned.times.is_empty() && tuned.winner.is_none(), "{tuned}");
        assert!(tuned.to_string().contains("nothing to choose"), "{tuned}");
        let short = Problem { a: Operand { len: 7, ..dense(2, 4, 4).a }, ..dense(2, 4, 4) };
        let error = context.tune_blocking(&short).unwrap_err();
        assert!(error.to_string().starts_with("buffer too small: A needs "), "{error}");
    }
    assert!(Context::cpu().tune_blocking(&dense(64, 64, 64)).unwrap().times.is_empty());
}

/// The program `product` in a process of its own.
fn product(adapter: &Adapter, folder: &Path, args: &[&str]) -> Command {
    // A packed suite has the program at another place than the build.
    let program = std::env::var_os("CARGO_BIN_EXE_product")
        .unwrap_or_else(|| env!("CARGO_BIN_EXE_product").into());
    let mut command = Command::new(program);
    command.args(args).env("TILEWISE_ADAPTER", adapter.address()).env("TILEWISE_CACHE_DIR", folder);
    command.env("RUST_LOG", "tilewise=debug").stdout(Stdio::piped()).stderr(Stdio::piped());
    for name in ["TILEWISE_KERNEL", "TILEWISE_MATRIX_UNITS", "TILEWISE_TUNED"] {
        command.env_remove(name);
    }
    command
}

/// Whether it succeeded, what it printed, and what it logged.
fn finish(child: Child) -> (bool, String, String) {
    let output = child.wait_with_output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.success(), text(&output.stdout), text(&output.stderr))
}

fn run(command: &mut Command) -> (bool, String, String) {
    finish(command.spawn().unwrap())
}

/// A damaged file is ignored, with one warning that names it and the reason. The next winner
/// replaces it.
#[test]
fn unusable_files() {
    let Some(adapter) = any() else { return };
    let folder = folder("unusable");
    let args = ["60", "64", "48"];
    let (ok, printed, log) = run(product(adapter, &folder, &args).arg("--tune"));
    assert!(ok && printed.contains("kept in"), "{printed}{log}");
    let path = file(&folder.clone());
    let good = std::fs::read_to_string(&path).unwrap();
    let class = good.lines().nth(1).unwrap().split('\t').next().unwrap();
    let fields: Vec<&str> = good.lines().next().unwrap().split('\t').collect();
    let forced = format!("{class}\tsimt/32x32x32+k1\n");
    let with = |at: usize, other: &str| {
        let mut fields = fields.clone();
        fields[at] = other;
        forged(&fields.join("\t"), &forced).into_bytes()
    };
    let cases = [
        (Vec::new(), "no text of tuned kernels"),
        (vec![0xff; 100], "UTF-8"),
        (b"something else\n".to_vec(), "no text of tuned kernels"),
        (good.as_bytes()[..good.len() - 9].to_vec(), "checksum"),
        (good.split("checksum").next().unwrap().into(), "end is missing"),
        (good.replace(class, "f32/8").into_bytes(), "checksum"),
        (with(1, "2"), "format is \"2\""),
        (with(2, "vulkan another"), "adapter is \"vulkan another\""),
        (with(3, "0.0"), "driver is \"0.0\""),
        (with(4, "0000000000000000"), "hash of kernels is"),
        (forged(&good, "no kernel\n").into_bytes(), "a line of it"),
    ];
    for (contents, reason) in cases {
        std::fs::write(&path, contents).unwrap();
        let (ok, printed, log) = run(&mut product(adapter, &folder, &args));
        assert!(ok && !printed.contains("simt"), "{reason}: {printed}{log}");
        let warnings: Vec<_> =
            log.lines().filter(|line| line.contains("WARN") && line.contains("ignored")).collect();
        let named = path.file_name().unwrap().to_string_lossy();
        assert!(
            warnings.len() == 1 && warnings[0].contains(&*named) && warnings[0].contains(reason),
            "{reason}: {log}"
        );
    }
    // The forged winner is used, but not if tuned winners are switched off.
    std::fs::write(&path, forged(&good, &forced)).unwrap();
    let (_, printed, log) = run(&mut product(adapter, &folder, &args));
    assert!(printed.contains("kernel simt/32x32x32") && !log.contains("WARN"), "{printed}{log}");
    for (name, value) in [("TILEWISE_TUNED", "off"), ("TILEWISE_CACHE_DIR", "")] {
        let (ok, printed, log) = run(product(adapter, &folder, &args).env(name, value));
        assert!(ok && !printed.contains("simt"), "{name}: {printed}{log}");
    }
    let (_, printed, _) =
        run(product(adapter, &folder, &args).env("TILEWISE_TUNED", "off").arg("--tune"));
    assert!(!printed.contains("kept in"), "{printed}");
    std::fs::write(&path, "damaged").unwrap();
    run(product(adapter, &folder, &args).arg("--tune"));
    assert_eq!(std::fs::read_to_string(&path).unwrap().lines().next(), good.lines().next());
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Processes that tune different problems at the same time keep each other's winners.
#[test]
fn many_processes() {
    let Some(adapter) = any() else { return };
    let folder = folder("many");
    let shapes = ["36", "44", "52", "64"];
    let children: Vec<_> = shapes
        .map(|size| product(adapter, &folder, &[size, "64", "40", "--tune"]).spawn().unwrap())
        .into();
    let mut classes = Vec::new();
    for child in children {
        let (ok, printed, log) = finish(child);
        assert!(ok && !log.contains("WARN"), "{printed}{log}");
        classes.push(
            printed.lines().find_map(|line| line.strip_prefix("class   ")).unwrap().to_owned(),
        );
    }
    let text = std::fs::read_to_string(file(&folder)).unwrap();
    let mut kept: Vec<_> =
        text.lines().skip(1).map(|line| line.split('\t').next().unwrap().to_owned()).collect();
    assert_eq!(kept.pop().as_deref(), Some("checksum"));
    classes.sort();
    assert_eq!(kept, classes);
    let (_, _, log) = run(&mut product(adapter, &folder, &["64", "64", "40"]));
    assert!(!log.contains("WARN"), "{log}");
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Without a request, nothing is timed, only the planner's kernel is compiled, and no file is
/// written.
#[test]
fn no_tuning_unasked() {
    let Some(adapter) = any() else { return };
    let folder = folder("unasked");
    let compiled = |log: &str| log.lines().filter(|line| line.contains("compiled")).count();
    let (ok, printed, log) = run(&mut product(adapter, &folder, &["60", "64", "48"]));
    assert!(ok && compiled(&log) == 1 && !log.contains("tuned on"), "{printed}{log}");
    let files = std::fs::read_dir(&folder).map_or(0, |all| {
        all.filter(|entry| {
            entry.as_ref().unwrap().file_name().to_string_lossy().starts_with("tuned")
        })
        .count()
    });
    assert_eq!(files, 0);
    let (_, _, log) = run(product(adapter, &folder, &["60", "64", "48"]).arg("--tune"));
    assert!(compiled(&log) > 1 && log.contains("tuned on"), "{log}");
    std::fs::remove_dir_all(&folder).unwrap();
}

/// The environment forces kernels, on a device of the caller's too. An invalid value is an error
/// that names the variable.
#[test]
fn environment() {
    let Some(adapter) = any() else { return };
    let folder = folder("environment");
    let args = ["64", "64", "256"];
    let forced = |kernel: &str, arg: Option<&str>| {
        run(product(adapter, &folder, &args).args(arg).env("TILEWISE_KERNEL", kernel))
    };
    for (kernel, ran) in [
        ("naive", "naive/8x32"),
        ("simt/32x32x32", "simt/32x32x32"),
        ("simt/64x64x16+k4", "simt/64x64x16+k4"),
    ] {
        for arg in [None, Some("--own-device")] {
            let (ok, printed, log) = forced(kernel, arg);
            assert!(ok && printed.contains(&format!("kernel {ran}")), "{kernel}: {printed}{log}");
            assert!(log.contains("TILEWISE_KERNEL") && log.contains(kernel), "{log}");
        }
    }
    for (kernel, why) in [
        ("nonesuch", "nonesuch"),
        ("simt/1x1", "simt/1x1"),
        ("simt+k0", "+k wants"),
        ("naive+k2", "it cannot split K"),
        ("simt/64x64x16+k1000", "1000 asked, 16 made"),
        ("simt+pad8", "have lines to pad"),
    ] {
        let (ok, _, log) = forced(kernel, None);
        let error = log.lines().find(|line| line.starts_with("error")).unwrap_or_default();
        assert!(!ok && error.contains("TILEWISE_KERNEL") && error.contains(why), "{kernel}: {log}");
    }
    let (ok, printed, _) = forced("", None);
    assert!(ok && printed.contains("kernel "), "an empty value is none: {printed}");
    let cpu = |kernel: &str| {
        run(product(adapter, &folder, &args)
            .env("TILEWISE_ADAPTER", "cpu")
            .env("TILEWISE_KERNEL", kernel))
    };
    assert!(cpu("simt").0 && !cpu("nonesuch").0);
    let (ok, _, log) = run(product(adapter, &folder, &args).env("TILEWISE_MATRIX_UNITS", "off"));
    assert!(ok && log.contains("TILEWISE_MATRIX_UNITS"), "{log}");
    let (ok, _, log) = run(product(adapter, &folder, &args).env("TILEWISE_MATRIX_UNITS", "on"));
    assert!(ok && !log.contains("TILEWISE_MATRIX_UNITS"), "{log}");
    let _ = std::fs::remove_dir_all(&folder);
}

/// Options say the same as the environment.
#[test]
fn options() {
    for adapter in adapters() {
        let options = ContextOptions::default().adapter(adapter.address());
        let options = options.kernel("naive").matrix_units(Switch::Off);
        let context = Context::request_blocking(&options).unwrap();
        assert!(context.caps().coop.is_empty());
        let (kernel, explained) = chosen(&context, [64, 64, 64]);
        assert!(
            kernel == "naive/8x32" && explained.contains("forced by ContextOptions::kernel"),
            "{explained}"
        );
        // An unknown name is found when the context opens, with options and with a call alike.
        for (name, nearest) in [("naiv", "naive"), ("simt/1x1", "simt/")] {
            let options = ContextOptions::default().adapter(adapter.address()).kernel(name);
            let opened = Context::request_blocking(&options).map(drop);
            let (device, queue) = adapter.device(|_| {});
            let own = Context::from_device(device, queue, &options).map(drop);
            let a = Tensor::zeros(&adapter.context, DType::F32, &[4, 4]).unwrap();
            let called = Gemm::new(&a, &a).kernel(name).run().map(drop);
            for result in [opened, own, called] {
                let Err(Error::Misuse(text)) = &result else { panic!("{name}: {result:?}") };
                let told = text.split_once(&format!("no kernel is named {name:?}; the nearest of"));
                assert!(told.is_some_and(|(_, all)| all.contains(nearest)), "{text}");
            }
        }
    }
}

/// Ends of groups that lie behind others in their buffer.
#[test]
fn groups_behind_others() {
    if let Some(adapter) = any() {
        let experts = Operand::packed(Format::Dense(DType::F32), 3, 32, 16);
        let grouping = Grouping::RaggedM { groups: 3, first: 0, offset: 200, expected: None };
        let problem = Problem { b: experts, grouping, ..dense(24, 16, 32) };
        let tuned = adapter.another().tune_blocking(&problem).unwrap();
        assert!(!tuned.times.is_empty(), "{tuned}");
    }
}

/// If no buffer of the device holds the operands, that is an error, and the process goes on.
#[test]
fn operands_without_memory() {
    for adapter in adapters() {
        let tuned = adapter.context.tune_blocking(&dense(1 << 19, 1 << 19, 2));
        match &tuned {
            Err(Error::DeviceLimit(text)) if text.contains("needs 1099511627776 bytes") => {}
            Err(Error::OutOfMemory(text)) => assert!(!text.is_empty()),
            other => panic!("{}: {other:?}", adapter.name()),
        }
    }
}
