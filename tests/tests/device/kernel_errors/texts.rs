//! Wrong texts, and the places that errors name.

use super::*;

/// Every error in the text names a place in the part that the user wrote, by its own lines and
/// columns.
#[test]
fn places_in_the_text() {
    for context in contexts() {
        let call = call(&context);
        for (body, place) in [
            ("let i = global_id.x;\nout[i] = nobody;", "mine (body):2:10"),
            ("let i = global_id.x\nout[i] = 1.0;", "mine (body):2:1"),
            ("out[0] = 1.0;\n  out[1] = 2u;", "mine (body):2:3"),
            ("out[0] = 1.0; a[0] = 1.0;", "mine (body):1:15"),
            // A declaration that moves to module scope keeps its place, and so does the text after
            // it.
            ("out[0] = 1.0;\n   var<workgroup> t: array<f33, 4>;", "mine (body):2:28"),
            ("var<workgroup> t: f32; out[0] = é;\nlet x = 1;", "mine (body):1:33"),
            ("const N = 4u; out[M] = 1.0;", "mine (body):1:19"),
            ("out[0] = 1.0; }\nfn other() {", "mine (body):1:15"),
            ("out[0] = 1.0;\nif true {", "mine (body):2:9"),
            ("out[0] = 1.0;\n /* and /* so */ on", "mine (body):2:2: this comment has no end"),
            ("let grid = 1u;\nout[0] = 1.0;", "mine (body):1:5"),
            ("let a = 1u;\nlet a = 2u; out[0] = 1.0;", "mine (body):2:5"),
            ("let x = a_shape[0];\nlet a_shape = 1u; out[x] = 1.0;", "mine (body):2:5"),
            // An output that nothing writes is reported only if the text is otherwise right.
            ("let x = 1.0;\nlet y = nobody;", "mine (body):2:9"),
            ("let x = a[0] +;", "mine (body):1:"),
        ] {
            refused(&kernel(body), &call, kind!(Misuse), &[place]);
        }
        let header = |text: &str| kernel(FINE).header(text);
        refused(
            &header("// first\nfn f() -> f32 { return 1u; }"),
            &call,
            kind!(Misuse),
            &["mine (header):2:"],
        );
        refused(
            &header("enable f16;\nenable nothing;"),
            &call,
            kind!(Misuse),
            &["mine (header):2:8"],
        );
        refused(&header("fn f() {"), &call, kind!(Misuse), &["mine (header):1:8"]);
        refused(
            &header("fn f() -> u32 { return a_shape[0]; }"),
            &call,
            kind!(Misuse),
            &["mine (header):1:24"],
        );
        refused(&header("fn main() {}"), &call, kind!(Misuse), &["mine (header):1:4", "main"]);
        refused(
            &header("\n /*"),
            &call,
            kind!(Misuse),
            &["mine (header):2:2: this comment has no end"],
        );
        let reach = "var<private> p: array<u32, 4>; fn f() { p[7] = 1u; }";
        refused(
            &header(reach),
            &call,
            kind!(Misuse),
            &["mine (header):1:", "index 7 is out of bounds"],
        );
    }
}

/// At module scope nothing may change the meaning of the generated text. Elsewhere the user may
/// choose any names.
#[test]
fn names_that_the_generated_text_uses() {
    for context in contexts() {
        let call = call(&context).dtype("T", DType::F32);
        for name in [
            "any",
            "u32",
            "vec3",
            "array",
            "f32",
            "a",
            "out",
            "T",
            "grid",
            "global_id",
            "a_strides",
            "tilewise_call",
        ] {
            for declaration in [
                format!("const {name} = 1;"),
                format!("alias {name} = i32;"),
                format!("fn {name}() {{}}"),
            ] {
                let words = ["mine (header):2:", &format!("`{name}` cannot be declared here")];
                refused(
                    &kernel(FINE).header(format!("\n{declaration}")),
                    &call,
                    kind!(Misuse),
                    &words,
                );
            }
            let body = format!("{FINE}\nconst {name} = 1;");
            refused(
                &kernel(&body),
                &call,
                kind!(Misuse),
                &["mine (body):2:7", &format!("`{name}`")],
            );
        }
        let fine = kernel(&format!("{{ let any = 1u; let u32 = any; let grid = u32; }} {FINE}"));
        fine.header(
            "const step = 2; fn f(a: f32, any: f32) -> f32 { let vec3 = a; return vec3 + any; }",
        )
        .run(&call)
        .unwrap();
    }
}

/// Numbers that naga has in addition to WGSL are refused everywhere, with their place.
#[test]
fn numbers_that_wgsl_does_not_have() {
    for context in contexts() {
        let call = call(&context);
        for (body, place, what) in [
            ("let x = 5lf;\nout[0] = f32(x);", "mine (body):1:9", "`5lf`"),
            ("out[0] = f32(5lu + 0x1Fli);", "mine (body):1:14", "`5lu`"),
            ("out[0] = f32(0x1Fli);", "mine (body):1:14", "`0x1Fli`"),
            ("out[0] = 1.0;\nvar x: vec2<f64>;", "mine (body):2:13", "`f64`"),
            ("out[0] = f32(i64(a[0]));", "mine (body):1:14", "`i64`"),
            ("var<workgroup> t: array<u64, 2>; out[0] = f32(t[0]);", "mine (body):1:25", "`u64`"),
            ("out[0] = f32(i16(a[0]));", "mine (body):1:14", "`i16`"),
            ("out[0] = f32(u16(a[0]));", "mine (body):1:14", "`u16`"),
        ] {
            refused(&kernel(body), &call, kind!(Unsupported), &[place, what]);
        }
        let header = kernel(FINE).header("fn f() {}\nstruct S { x: i64 }");
        refused(&header, &call, kind!(Unsupported), &["mine (header):2:15", "`i64`"]);
    }
    for adapter in adapters() {
        let call = call(&adapter.context);
        let wide = kernel("out[0] = f32(5lu);");
        let device = adapter.context.device().unwrap();
        let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let error = wide.record(&mut encoder, &call).unwrap_err();
        assert!(
            matches!(&error, Error::Unsupported(text) if text.contains("mine (body):1:14")),
            "{error}"
        );
        encoder.finish();
    }
}

/// Under `Edge::Clip`, clipped invocations return before any barrier.
#[test]
fn barriers_and_clipping() {
    for context in contexts() {
        let call = call(&context);
        for (body, place) in [
            (
                "out[0] = 1.0;\n workgroupBarrier();",
                "mine (body):2:2: not all invocations reach this workgroupBarrier",
            ),
            ("storageBarrier(); out[0] = 1.0;", "mine (body):1:1"),
            ("var<workgroup> n: u32; out[0] = f32(workgroupUniformLoad(&n));", "mine (body):1:37"),
        ] {
            refused(&kernel(body), &call, kind!(Misuse), &[place, "Edge::Whole"]);
            kernel(body).run(&call.clone().edge(Edge::Whole)).unwrap();
        }
        let header = kernel("out[0] = 1.0; f();").header("fn f() { workgroupBarrier(); }");
        refused(&header, &call, kind!(Misuse), &["mine (header):1:10"]);
        kernel("out[0] = 1.0; // workgroupBarrier()").run(&call).unwrap();
        // If the grid ends with a workgroup, nothing is clipped, along any axis.
        let barrier =
            kernel("workgroupBarrier(); if all(global_id == vec3<u32>()) { out[0] = 1.0; }");
        let call = call.grid([8, 6, 3]);
        for (workgroup, aligned) in
            [([4, 3, 1], true), ([8, 6, 3], true), ([3, 3, 1], false), ([4, 4, 1], false)]
        {
            let call = call.clone().workgroup(workgroup);
            match barrier.run(&call) {
                Ok(_) => assert!(aligned, "{workgroup:?}"),
                Err(error) => assert!(
                    !aligned && error.to_string().contains("multiple of the workgroup"),
                    "{error}"
                ),
            }
        }
        refused(&barrier, &call.clone().workgroup([8, 6, 2]), kind!(Misuse), &["mine (body):1:1"]);
    }
}

/// Rules for these kernels that the compiler does not know.
#[test]
fn hints() {
    for context in contexts() {
        let rate = call(&context).value("rate", 2.0f32);
        let header =
            kernel("out[global_id.x] = f() * rate;").header("fn f() -> f32 { return rate; }");
        let words = ["mine (header):1:", "`rate` is a value of the call", "as an argument"];
        refused(&header, &rate, kind!(Misuse), &words);
        let a = Tensor::zeros(&context, DType::BF16, &[4]).unwrap();
        let halves = Call::of(&a).output(DType::BF16, &[4]).grid([4, 1, 1]);
        let words = ["mine (body):1:", "out is bf16", "out_store takes single ones"];
        refused(&kernel("out[global_id.x] = 1.0;"), &halves, kind!(Misuse), &words);
        let words = ["a is bf16", "a_load takes single ones"];
        refused(&kernel("out_store(0u, a[0] + 1.0);"), &halves, kind!(Misuse), &words);
    }
}

/// A device that was made without a feature. The error names the feature, the place of its use, and
/// whether the adapter has it.
#[test]
fn features_that_the_device_lacks() {
    // The sanitizer has all features.
    let lacks = |kernel: &Kernel, call: &Call, words: &[&str]| {
        let error = kernel.run(call).unwrap_err();
        let told = |text: &str| words.iter().all(|word| text.contains(word));
        assert!(matches!(&error, Error::DeviceLimit(text) if told(text)), "{error} {words:?}");
    };
    for adapter in adapters() {
        let (device, queue) = adapter.device(|_| ());
        let found = adapter.found();
        let asked = Context::from_wgpu(&found, device, queue, &Default::default()).unwrap();
        let features = found.features();
        for (context, is_known) in [(adapter.with_limits(|_| ()), false), (asked, true)] {
            let told = |has: bool| match (is_known, has) {
                (false, _) => "device_descriptor() asks for it if the adapter",
                (true, true) => "the device was made without",
                (true, false) => "the adapter ",
            };
            let call = call(&context);
            let sum = kernel("\nout[0] = subgroupAdd(a[0]);");
            let has = features.contains(wgpu::Features::SUBGROUP);
            let words = ["mine (body):2:10 has `subgroupAdd`", "subgroups", told(has)];
            lacks(&sum, &call, &words);
            let has = features.contains(wgpu::Features::SHADER_F16);
            let words = ["it uses f16", "shader-f16", told(has), adapter.name()];
            lacks(&kernel("out[0] = f32(f16(a[0]));"), &call, &words);
        }
    }
}
