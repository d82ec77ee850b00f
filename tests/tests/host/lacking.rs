//! Devices that lack something: kernels that need it are not used, and `explain` says why.

use tilewise::{Context, Tensor, ops};
use tilewise_core::plan::{Forced, Table, choices};
use tilewise_core::{Caps, DType, Error, PackedProducts, Problem, QuantFormat, explain, plan};
use tilewise_shaders::LIBRARY;

/// If the language has no products of bytes, the kernel that needs them is not used, even if it is
/// named.
#[test]
fn products_of_bytes() {
    let format = QuantFormat::affine(4, 64, DType::F16).unwrap();
    let weights = Table::stored(format, 1, 4096, 4096).operand.t();
    let problem = Problem { b: weights, ..Problem::dense(DType::F16, 4, 4096, 4096) };
    let dot: Forced = "dot".parse().unwrap();
    let caps = |packed_products| Caps { packed_products, ..Caps::webgpu_default() };
    let is_offered = |caps: &Caps| {
        let all = choices(&problem, caps, &LIBRARY).unwrap();
        all.iter().any(|choice| choice.kernel == "dot")
    };
    for there in [PackedProducts::Instruction, PackedProducts::WrittenOut] {
        assert!(is_offered(&caps(there)));
        plan(&problem, &caps(there), &LIBRARY, Some(&dot)).unwrap();
    }
    let without = caps(PackedProducts::Absent("not in this language"));
    assert!(!is_offered(&without));
    let explained = explain(&problem, &without, &LIBRARY, None).unwrap();
    let why = "its products of bytes are off: not in this language";
    assert!(explained.contains(why), "{explained}");
    match plan(&problem, &without, &LIBRARY, Some(&dot)) {
        Err(Error::DeviceLimit(text)) => assert!(text.contains(why), "{text}"),
        other => panic!("{other:?}"),
    }
    // Without such products, few rows meet weights as bytes, too.
    assert_eq!(plan(&problem, &without, &LIBRARY, None).unwrap().choice.unwrap().kernel, "rows");
}

/// FXC takes long for loops that are repeated in a text, so plans for it do not repeat them.
#[test]
fn loops_stay_where_fxc_compiles() {
    let repeats = |fxc| {
        let caps = Caps { fxc, ..Caps::webgpu_default() };
        let problem = Problem::dense(DType::F32, 64, 64, 64);
        plan(&problem, &caps, &LIBRARY, None).unwrap().passes[0].unroll
    };
    assert!(repeats(false) && !repeats(true));
}

/// FXC takes too long for 16 rows of `gemv`, so these rows go to smaller tiles there.
#[test]
fn fxc_has_gemv_of_eight_rows() {
    let problem = Problem::dense(DType::F32, 16, 8192, 8192);
    let variant = |fxc, kernel: &str| {
        let caps = Caps { fxc, ..Caps::webgpu_default() };
        let forced = kernel.parse().unwrap();
        plan(&problem, &caps, &LIBRARY, Some(&forced)).map(|plan| plan.choice.unwrap().variant)
    };
    assert_eq!(variant(false, "gemv/16x32").unwrap(), "16x32");
    let refused = variant(true, "gemv/16x32").unwrap_err().to_string();
    assert!(refused.contains("FXC takes too long"), "{refused}");
    assert_ne!(variant(true, "gemv").unwrap(), "16x32");
}

/// One operation is not offered with FXC, and its error names the remedy.
#[test]
fn operations_without_dxc() {
    let context = Context::cpu_as(Caps { fxc: true, ..Caps::webgpu_default() });
    let x = Tensor::upload(&context, &[2.0f32, 1.0, 3.0], &[1, 3]).unwrap();
    let Err(Error::DeviceLimit(why)) = ops::top_k(&x, 1).run() else { panic!("top_k ran") };
    assert!(why.contains("dxcompiler.dll"), "{why}");
    assert_eq!(ops::max(&x, 1).run().unwrap().read_f32_blocking().unwrap(), [3.0]);
}
