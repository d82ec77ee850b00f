//! f32 arithmetic by integers: the host's bits on every adapter and in the sanitizer's machine.

use tilewise::{Call, Context, DType, Kernel, Tensor};
use tilewise_tests::{adapters, arithmetic};

fn check(context: &Context, pairs: &[[u32; 2]]) {
    let source = format!(
        "let x = pairs[global_id.x * 2u];\n\
         let y = pairs[global_id.x * 2u + 1u];\n\
         let at = global_id.x * {}u;\n\
         {}",
        arithmetic::RESULTS,
        arithmetic::BODY
    );
    let kernel = Kernel::new("float")
        .inputs(["pairs"])
        .outputs(["out"])
        .header(arithmetic::text())
        .source(source);
    let input =
        Tensor::upload(context, bytemuck::cast_slice::<_, u32>(pairs), &[2 * pairs.len()]).unwrap();
    let call =
        Call::new(context).input(&input).output(DType::U32, &[arithmetic::RESULTS * pairs.len()]);
    let results = kernel
        .run(&call.grid([pairs.len() as u32, 1, 1]))
        .unwrap_or_else(|error| panic!("{error}"));
    let complaints = arithmetic::complaints(pairs, &results[0].read_blocking::<u32>().unwrap());
    assert!(complaints.is_empty(), "{}: {}", context.adapter_name(), complaints.join("\n"));
}

#[test]
fn on_every_adapter() {
    let pairs = arithmetic::pairs(400_000);
    for adapter in adapters() {
        check(&adapter.context, &pairs);
    }
}

#[test]
fn in_the_sanitizers_machine() {
    check(&Context::cpu(), &arithmetic::pairs(100_000));
}
