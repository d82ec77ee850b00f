//! temp
use std::time::Instant;
use tilewise::DType;
use tilewise_tests::case::LAYOUTS;
use tilewise_tests::{Case, Place, adapters, kernels, run};
#[test]
fn timing() {
    for adapter in adapters() {
        for kernel in kernels(adapter) {
            if !["gemv/4x4", "simt/128x128x16", "simt/64x64x16"].contains(&&*kernel.name) {
                continue;
            }
            for t in [DType::F32, DType::F16, DType::BF16] {
                for odd in [false, true] {
                    for e in [0, 1] {
                        for (i, layout) in LAYOUTS.iter().enumerate() {
                            if i != 1 && i != 2 {
                                continue;
                            }
                            let case = Case::new(if odd { [33, 29, 31] } else { [32, 32, 32] }, [t; 3])
                                .kernel(&kernel.name)
                                .layout(*layout)
                                .integers();
                            let case = if odd { case.odd() } else { case };
                            let case = if e == 1 {
                                Case { beta: 3.0, residual: Some(Place::packed(t)), ..case }
                            } else {
                                case
                            };
                            let t0 = Instant::now();
                            let r = run(&adapter.context, &case);
                            let first = t0.elapsed();
                            println!(
                                "{} {} {t} odd {odd} beta {e} layout {i}: first {:.2?} {}",
                                adapter.name(),
                                kernel.name,
                                first,
                                r.is_ok()
                            );
                        }
                    }
                }
            }
        }
    }
}
