//! temp
use std::time::Instant;
use tilewise::DType;
use tilewise_tests::case::LAYOUTS;
use tilewise_tests::{Case, adapters, kernels, run};
#[test]
fn timing() {
    for adapter in adapters() {
        for kernel in kernels(adapter) {
            for (i, layout) in LAYOUTS.iter().enumerate() {
                if i > 1 { continue; }
                let case = Case::new([33, 29, 31], [DType::F32; 3]).kernel(&kernel.name).layout(*layout).integers();
                let t = Instant::now();
                let r = run(&adapter.context, &case);
                let first = t.elapsed();
                let t = Instant::now();
                let _ = run(&adapter.context, &case);
                println!("{} {} {i}: first {:.0?} second {:.1?} {}", adapter.name(), kernel.name, first, t.elapsed(), r.is_ok());
                if let Err(e) = r { println!("   {e}"); }
            }
        }
    }
}
