//! Kernels that are chosen by name.

use super::*;

#[test]
fn kernels_by_name() {
    for context in contexts() {
        let a = zeros(&context, &[4, 4]);
        let gemm = |name: &str| Gemm::new(&a, &a).kernel(name).run();
        refused(
            gemm("smit"),
            kind!(Misuse),
            &["no kernel is named ", "\"smit\"; the nearest of ", " are simt, "],
        );
        refused(
            gemm("simt/1x1"),
            kind!(Misuse),
            &["no kernel is named ", "simt/1x1", "simt/64x64x16"],
        );
        for count in ["0", "4097", "x", ""] {
            refused(gemm(&format!("simt+k{count}")), kind!(Misuse), &["+k"]);
        }
        for pad in ["-1", "1025", "x", "", "8+pad8"] {
            refused(gemm(&format!("simt+pad{pad}")), kind!(Misuse), &["+pad", "from 0 to 1024"]);
        }
        refused(gemm("simt+q8"), kind!(Misuse), &["+q8", "+k", "+pad"]);
        if !context.is_cpu() {
            refused(
                gemm("simt/64x64x16+pad8"),
                kind!(DeviceLimit),
                &["simt/64x64x16", "have lines to pad"],
            );
        }
        // The CPU executor has no kernels, and accepts every known name.
        match context.is_cpu() {
            true => drop(gemm("naive+k2").unwrap()),
            false => refused(gemm("naive+k2"), kind!(DeviceLimit), &["naive", "2 splits"]),
        }
        // K of 70 has five steps of 16. The product has as many splits, or none, and no other
        // number silently.
        if !context.is_cpu() {
            let [a, b] = [zeros(&context, &[4, 70]), zeros(&context, &[70, 4])];
            let gemm = |splits: u32| Gemm::new(&a, &b).kernel(format!("simt/64x64x16+k{splits}"));
            for splits in [4, 6, 1000] {
                let words = [&*format!("+k{splits}"), "K = 70", "name +k"];
                refused(gemm(splits).run(), kind!(Misuse), &words);
                refused(gemm(splits).explain(), kind!(Misuse), &words);
            }
            let words = ["1000 asked", "5 made", "name +k5"];
            refused(gemm(1000).plans(), kind!(Misuse), &words);
            assert_eq!(gemm(5).plans().unwrap().remove(0).choice.unwrap().splits, 5);
        }
        // Blanks around a name do not belong to it.
        gemm(" naive ").unwrap();
        // An unknown name is an error even if there is nothing to do.
        let nothing = zeros(&context, &[0, 4]);
        refused(
            Gemm::new(&nothing, &a).kernel("fast").run(),
            kind!(Misuse),
            &["no kernel is named ", "fast"],
        );
    }
}

/// Padding that keeps vectors and matrices aligned, and that fits the memory.
#[test]
fn padding_by_name() {
    let with_units = &devices()[0];
    let planned = |dtype, name: &str| {
        plan(
            &Problem::dense(dtype, 64, 64, 256),
            with_units,
            &LIBRARY,
            Some(&name.parse().unwrap()),
        )
    };
    refused(
        planned(DType::F16, "coop/64x64x32+pad12"),
        kind!(DeviceLimit),
        &["+pad12", "multiples of 8", "8 is its own"],
    );
    refused(
        planned(DType::F32, "coop/single-64x64x16+pad2"),
        kind!(DeviceLimit),
        &["+pad2", "multiples of 4"],
    );
    refused(
        planned(DType::F16, "coop/64x64x32+pad1024"),
        kind!(DeviceLimit),
        &["workgroup memory", "allowed"],
    );
    // The planner finds the variant that this padding suits.
    assert!(planned(DType::F32, "coop+pad12").is_ok());
    for name in ["coop/64x64x32+pad0", "coop/64x64x32+pad16+k2", "coop/64x64x32+k2+pad16"] {
        let plan = planned(DType::F16, name).unwrap();
        let (pad, lines) = if name.contains("pad0") { (0, 96) } else { (16, 96) };
        let choice = plan.choice.unwrap().to_string();
        assert_eq!(choice, name.replace("+k2+pad16", "+pad16+k2"));
        assert_eq!(choice.parse::<Forced>().unwrap().to_string(), choice);
        let own = planned(DType::F16, "coop/64x64x32").unwrap().passes[0].workgroup_bytes;
        assert_eq!(plan.passes[0].workgroup_bytes + 2 * lines * 8, own + 2 * lines * pad);
    }
}
