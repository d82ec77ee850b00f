//! Custom kernels.

use super::{Check, Outcome};
use half::f16;
use std::collections::BTreeSet;
use tilewise::sanitizer::Kind;
use tilewise::{Call, Context, DType, Edge, Error, Kernel, Tensor};

pub(super) fn checks(_: &Context) -> Vec<Check> {
    vec![
        Check::new("types, constants and a header", types),
        Check::new("views and shapes", views),
        Check::new("built-ins", built_ins),
        Check::new("the edge of a grid", edges),
        Check::new("a sum in workgroup memory", sums),
        Check::new("an output of old numbers", old_numbers),
        Check::new("f16", halves),
        Check::new("subgroups", subgroups),
        Check::new("a text that is wrong", wrong_text),
        Check::new("under the sanitizer", sanitized),
    ]
}

/// An error unless both are the same.
pub(super) fn same<T: PartialEq + std::fmt::Debug>(got: T, wanted: T) -> Outcome {
    if got == wanted { Ok(()) } else { Err(format!("{got:?}, wanted {wanted:?}").into()) }
}

/// A kernel from `a` to `out`.
pub(super) fn from_a(body: &str) -> Kernel {
    Kernel::new("test").inputs(["a"]).outputs(["out"]).source(body)
}

/// A call with these numbers as input.
pub(super) fn call(
    context: &Context,
    a: &[f32],
    dtype: DType,
    count: usize,
) -> Result<Call, Error> {
    let a = Tensor::upload(context, a, &[a.len()])?;
    Ok(Call::new(context).input(&a).output(dtype, &[count]).grid([count as u32, 1, 1]))
}

async fn types(context: Context) -> Outcome {
    let kernel = from_a(
        "let i = global_id.x; if FLIP { out[i] = T(twice(f32(a[i])) * SCALE) - T(SHIFT) + T(N); }",
    )
    .header("fn twice(x: f32) -> f32 { return x + x; }");
    let call = call(&context, &[10.0, -25.0, 30.0], DType::I32, 3)?.dtype("T", DType::I32);
    let call = call.constant("N", 7u32).constant("SHIFT", i32::MIN / 2);
    let call = call.constant("SCALE", 0.5f32).constant("FLIP", true);
    let got = kernel.run_one(&call)?.read::<i32>().await?;
    same(got, [10, -25, 30].map(|number| number + (1 << 30) + 7).to_vec())
}

async fn views(context: Context) -> Outcome {
    let numbers: Vec<f32> = (0..24).map(|i| i as f32 + 1.0).collect();
    let a = Tensor::upload(&context, &numbers, &[2, 3, 4])?.t();
    let kernel = from_a(
        "let at = global_id.x * a_strides[2] + global_id.y * a_strides[1];
        out[global_id.x * a_shape[1] + global_id.y] = a[at + a_strides[0]];",
    );
    let call = Call::new(&context).input(&a).output(DType::F32, &[3, 4]).grid([3, 4, 1]);
    let wanted: Vec<f32> = numbers[12..].to_vec();
    for kernel in [kernel.clone(), kernel.ensure_contiguous(false)] {
        same(kernel.run_one(&call)?.read::<f32>().await?, wanted.clone())?;
    }
    Ok(())
}

async fn built_ins(context: Context) -> Outcome {
    let kernel = from_a(
        "let at = (global_id.z * 4u + global_id.y) * 3u + global_id.x;
        out[at] = 1u + local_index + 100u * (workgroup_id.x + 2u * workgroup_id.y) \
        + 10000u * num_workgroups.z + u32(a[0]) * local_id.x;",
    );
    let call = call(&context, &[1e6], DType::U32, 24)?.grid([3, 4, 2]).workgroup([2, 3, 1]);
    let mut wanted = Vec::new();
    for (_, y, x) in
        (0..2).flat_map(|z| (0..4u32).flat_map(move |y| (0..3u32).map(move |x| (z, y, x))))
    {
        let index = y % 3 * 2 + x % 2;
        wanted.push(1 + index + 100 * (x / 2 + 2 * (y / 3)) + 20_000 + 1_000_000 * (x % 2));
    }
    same(kernel.run_one(&call)?.read::<u32>().await?, wanted)
}

async fn edges(context: Context) -> Outcome {
    let kernel = from_a("atomicAdd(&out[select(0u, 1u, any(global_id >= SIZE))], u32(a[0]));")
        .atomic_outputs(true)
        .header("const SIZE = vec3<u32>(5u, 3u, 2u);");
    let call = call(&context, &[1.0], DType::U32, 2)?.init_value(1u32);
    let call = call.grid([5, 3, 2]).workgroup([4, 2, 2]);
    same(kernel.run_one(&call)?.read::<u32>().await?, vec![31, 1])?;
    let whole = call.edge(Edge::Whole);
    same(kernel.run_one(&whole)?.read::<u32>().await?, vec![31, 35])
}

async fn sums(context: Context) -> Outcome {
    let kernel = from_a(include_str!("sum.wgsl"));
    let numbers: Vec<f32> = (0..192).map(|i| (i % 7) as f32 - 2.0).collect();
    let call = call(&context, &numbers, DType::F32, 3)?.grid([192, 1, 1]).workgroup([64, 1, 1]);
    let wanted = numbers.chunks(64).map(|part| part.iter().sum::<f32>()).collect();
    same(kernel.run_one(&call)?.read::<f32>().await?, wanted)
}

async fn old_numbers(context: Context) -> Outcome {
    let kernel = Kernel::new("half").outputs(["out"]).source("out[global_id.x] *= 0.5;");
    let both = Tensor::upload(&context, &[3.0f32, 5.0, 7.0, 9.0], &[4])?;
    let out = both.narrow(0, 1, 2)?;
    kernel.run(&Call::new(&context).inout(&out).grid([2, 1, 1]))?;
    same(both.read::<f32>().await?, vec![3.0, 2.5, 3.5, 9.0])
}

/// An error unless the device refuses at once a feature that it lacks.
fn refused<T>(result: tilewise::Result<T>, feature: &str) -> Outcome {
    match result {
        Err(Error::DeviceLimit(text)) if text.contains(feature) => Ok(()),
        Err(error) => Err(error.into()),
        Ok(_) => Err(format!("the device lacks {feature}, and runs it").into()),
    }
}

async fn halves(context: Context) -> Outcome {
    let call = call(&context, &[1.0, -2.5, 3.0], DType::F16, 3)?;
    let ran = from_a("out[global_id.x] = f16(a[global_id.x]) * 2.0h;").run_one(&call);
    if !context.caps().f16 {
        return refused(ran, "shader-f16");
    }
    same(ran?.read::<f16>().await?, [2.0, -5.0, 6.0].map(f16::from_f32).to_vec())
}

async fn subgroups(context: Context) -> Outcome {
    let call = call(&context, &[2.0; 32], DType::F32, 32)?.workgroup([32, 1, 1]);
    let body = "out[global_id.x] = subgroupBroadcastFirst(a[global_id.x]);";
    let ran = from_a(body).run_one(&call);
    let device = context.device().ok_or("no device")?;
    if !device.features().contains(tilewise::wgpu::Features::SUBGROUP) {
        return refused(ran, "subgroups");
    }
    same(ran?.read::<f32>().await?, vec![2.0; 32])
}

async fn wrong_text(context: Context) -> Outcome {
    let call = call(&context, &[1.0], DType::F32, 1)?;
    for (body, words) in [
        ("out[0] = a[0] +;", ["test (body):1", "expression"]),
        ("\nout[0] = nothing;", ["test (body):2", "nothing"]),
    ] {
        match from_a(body).run(&call) {
            Err(Error::Misuse(text)) if words.iter().all(|word| text.contains(word)) => {}
            other => return Err(format!("{body:?} gives {:?}", other.map(|_| ())).into()),
        }
    }
    Ok(())
}

async fn sanitized(context: Context) -> Outcome {
    let call = call(&context, &[4.0, 5.0, 6.0], DType::F32, 3)?;
    for (body, wanted) in [
        ("out[global_id.x] = a[global_id.x];", vec![]),
        ("out[global_id.x] = a[global_id.x + 1u];", vec![Kind::OutOfBounds]),
        ("out[0] = a[global_id.x];", vec![Kind::NeverWritten, Kind::Race]),
    ] {
        let found = from_a(body).check(&call, Default::default()).await?.report.findings;
        let kinds: BTreeSet<_> = found.iter().map(|finding| finding.kind).collect();
        same(kinds, wanted.into_iter().collect())?;
    }
    Ok(())
}
