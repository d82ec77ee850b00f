//! probe
use tilewise::{Activation, Axis, DType};
use tilewise_shaders::FILES;
use tilewise_tests::sanitized::{Job, Shaders, options};
use tilewise_tests::{Case, Place, adapters, run};
#[test]
fn probe() {
    for adapter in adapters() {
        if !adapter.name().contains("llvmpipe") { continue }
        let library = Shaders::default();
        let (_, common) = FILES.iter().find(|(path, _)| *path == "params.wgsl").unwrap();
        let twice = format!("{common}\nfn fma(a: vec4<f32>, b: vec4<f32>, c: vec4<f32>) -> vec4<f32> {{ return a * b + c; }}\n");
        let _ = twice;
        let (_, linear) = FILES.iter().find(|(path, _)| *path == "epilogue/linear.wgsl").unwrap();
        let linear = linear.replace("        y += params.beta * c_load4_part(c_index(batch, row, col), n);", "        q = params.beta * c_load4_part(c_index(batch, row, col), n); y = vec4<f32>(y.x, (y + q).yzw);");
        let linear = linear.replace("    var y = params.alpha * x;", "    var q = vec4<f32>(); var y = params.alpha * x;");
        let linear = linear.replace("y.x += bias_load(at)", "q.x += bias_load(at)");
        let linear = linear.replace("    y = activation(y);", "    y.x += q.x; y = activation(y);");
        println!("{linear}");
        let text = format!("{linear}\nfn fma(a: vec4<f32>, b: vec4<f32>, c: vec4<f32>) -> vec4<f32> {{ return a * b + c; }}\n");
        let shaders = Shaders::with("epilogue/linear.wgsl", &text, &library);
        let case = Case::new([5, 22, 131], [DType::F32; 3]).kernel("gemv/1x32");
        let bias = Some((Axis::N, Place::packed(DType::F16)));
        let res = Some(Place::odd(DType::BF16));
        let base = || case.clone();
        for (name, case) in [
            ("alpha", Case { alpha: 0.7, ..base() }),
            ("beta", Case { beta: 1.3, ..base() }),
            ("alphabeta", Case { alpha: 0.7, beta: 1.3, ..base() }),
            ("bias", Case { bias, ..base() }),
            ("alpha bias", Case { alpha: 0.7, bias, ..base() }),
            ("beta bias", Case { beta: 1.3, bias, ..base() }),
            ("abb", Case { alpha: 0.7, beta: 1.3, bias, ..base() }),
            ("abbr", Case { alpha: 0.7, beta: 1.3, bias, residual: res, ..base() }),
            ("abb relu", Case { alpha: 0.7, beta: 1.3, bias, activation: Activation::Relu, ..base() }),
            ("all", Case { alpha: 0.7, beta: 1.3, bias, activation: Activation::Relu, residual: res, ..base() }),
        ] {
            let gpu = run(&adapter.context, &case).unwrap();
            let ours = Job::new(&case, adapter.context.caps()).unwrap().run(&shaders, &options()).unwrap();
            let d: Vec<_> = gpu.c.iter().zip(&ours.c).enumerate().filter(|(_, (a, b))| a.to_bits() != b.to_bits()).map(|(i, (a, b))| (i, *a, *b, a.to_bits() as i64 - b.to_bits() as i64)).collect();
            println!("{name}: {} differ {:?}", d.len(), d.iter().take(5).collect::<Vec<_>>());
        }
    }
}
