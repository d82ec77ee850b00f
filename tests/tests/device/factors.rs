//! Alpha and beta that lie on the device give the same bits as those from the host, in any order of
//! recording. The themes' epilogues have factors of every size and type.

use tilewise::{Context, DType, Gemm, QuantFormat, QuantizedTensor, Tensor, ops};
use tilewise_tests::{Rng, contexts};

fn numbers(context: &Context, shape: &[usize], dtype: DType) -> Tensor {
    let mut rng = Rng::new(shape.iter().sum::<usize>() as u64);
    let all: Vec<f32> = (0..shape.iter().product()).map(|_| rng.number()).collect();
    Tensor::upload(context, &all, shape).unwrap().cast(dtype).unwrap()
}

fn factor(context: &Context, value: f32) -> Tensor {
    Tensor::upload(context, &[value], &[]).unwrap()
}

fn bytes(tensor: &Tensor) -> Vec<u8> {
    tensor.read_bytes_blocking().unwrap()
}

/// Products of one pass and of several, with one factor on the device or both. With a beta of 0 the
/// old output has NaN. Some factors change from call to call while others stay.
#[test]
fn the_same_bits_as_from_the_host() {
    for context in &contexts() {
        for (dtype, kernel) in
            [(DType::F32, "naive"), (DType::F32, "gemv/1x4+k2"), (DType::BF16, "simt")]
        {
            let (a, b) = (numbers(context, &[5, 300], dtype), numbers(context, &[300, 7], dtype));
            let gemm = Gemm::new(&a, &b).kernel(kernel);
            let old = |beta: f32| {
                let c = numbers(context, &[5, 7], dtype);
                if beta == 0.0 {
                    c.fill(f32::NAN).unwrap();
                }
                c
            };
            // A plan shows 1 in place of a factor on the device: beside (-3, 1), (1, 2) would show
            // if the two shared a uniform.
            for (alpha, beta) in [
                (0.5, 2.0),
                (-3.0, 2.0),
                (-3.0, 0.0),
                (-3.0, 1.0),
                (1.0, 2.0),
                (0.0, -0.0),
                (7.0, f32::NAN),
            ] {
                let result = |gemm: Gemm| {
                    let c = old(beta);
                    gemm.run_into(&c).unwrap();
                    bytes(&c)
                };
                let wanted = result(gemm.clone().alpha(alpha).beta(beta));
                let both = [alpha, beta].map(|value| factor(context, value));
                for gemm in [
                    gemm.clone().alpha(alpha).beta_tensor(&both[1]),
                    gemm.clone().alpha_tensor(&both[0]).beta(beta),
                    gemm.clone().alpha_tensor(&both[0]).beta_tensor(&both[1]),
                    gemm.clone()
                        .alpha_tensor(&both[0])
                        .alpha(alpha)
                        .beta(9.0)
                        .beta_tensor(&both[1]),
                ] {
                    assert_eq!(result(gemm), wanted, "{alpha}, {beta}, {kernel} on {context:?}");
                }
            }
        }
    }
}

/// With alpha 0 the product is computed all the same, and zero times NaN or an infinity is NaN.
#[test]
fn alpha_of_zero() {
    for context in &contexts() {
        let b = Tensor::upload(context, &[1.0f32, 2.0], &[2, 1]).unwrap();
        let a = [1.0f32, f32::NAN, 1.0, f32::INFINITY, 1.0, 2.0];
        let a = Tensor::upload(context, &a, &[3, 2]).unwrap();
        for gemm in
            [Gemm::new(&a, &b).alpha(0.0), Gemm::new(&a, &b).alpha_tensor(&factor(context, 0.0))]
        {
            let y = gemm.run().unwrap().read_blocking::<f32>().unwrap();
            assert!(y[0].is_nan() && y[1].is_nan() && y[2] == 0.0, "{y:?} on {context:?}");
        }
    }
}

/// The device reads factors when it computes: after work that was recorded before, in one pass of
/// the caller's. It reads them before the output is written, so they may lie in the output.
#[test]
fn they_are_read_in_the_order_of_the_work() {
    for context in &contexts() {
        let a = Tensor::upload(context, &[1.0f32, 2.0], &[1, 2]).unwrap();
        let b = Tensor::upload(context, &[3.0f32, 4.0], &[2, 1]).unwrap(); // 11
        let alpha = factor(context, 2.0);
        let others = [5.0, -1.0].map(|value| factor(context, value));
        let outs = [(); 3].map(|()| Tensor::zeros(context, DType::F32, &[1, 1]).unwrap());
        let gemm = Gemm::new(&a, &b).alpha_tensor(&alpha);
        match (context.device(), context.queue()) {
            (Some(device), Some(queue)) => {
                let mut encoder = device.create_command_encoder(&Default::default());
                let mut pass = encoder.begin_compute_pass(&Default::default());
                gemm.record(&mut pass, &outs[0]).unwrap();
                for (other, out) in others.iter().zip(&outs[1..]) {
                    ops::copy(other).record(&mut pass, &alpha).unwrap();
                    gemm.record(&mut pass, out).unwrap();
                }
                drop(pass);
                queue.submit([encoder.finish()]);
            }
            _ => {
                gemm.run_into(&outs[0]).unwrap();
                for (other, out) in others.iter().zip(&outs[1..]) {
                    ops::copy(other).run_into(&alpha).unwrap();
                    gemm.run_into(out).unwrap();
                }
            }
        }
        let got = outs.map(|out| out.read_blocking::<f32>().unwrap()[0]);
        assert_eq!(got, [22.0, 55.0, -11.0], "{context:?}");

        let c = Tensor::upload(context, &[10.0f32, 3.0], &[2, 1]).unwrap();
        let (one, other) = (c.narrow(0, 0, 1).unwrap(), c.narrow(0, 1, 1).unwrap());
        let gemm = Gemm::new(&a, &b).alpha_tensor(&other).beta_tensor(&one);
        gemm.run_into(&one).unwrap(); // 3 · 11 + 10 · 10
        assert_eq!(c.read_blocking::<f32>().unwrap(), [133.0, 3.0], "{context:?}");
    }
}

#[test]
fn what_is_no_factor_is_an_error() {
    for context in &contexts() {
        let (a, b) =
            (numbers(context, &[2, 16], DType::F32), numbers(context, &[16, 2], DType::F32));
        let weights = QuantizedTensor::quantize(context, &[0.5; 32], [2, 16], QuantFormat::NVFP4);
        let weights = weights.unwrap().with_factor(3.0).unwrap();
        let number = factor(context, 1.0);
        let (plain, c) = (Gemm::new(&a, &b), Tensor::zeros(context, DType::F32, &[2, 2]).unwrap());
        for (gemm, wanted) in [
            (plain.clone().alpha_tensor(&a), "alpha is f32 of shape [2, 16], wanted one element"),
            (
                plain.clone().beta_tensor(&number.cast(DType::F16).unwrap()),
                "beta is f16 of shape []",
            ),
            (
                plain.clone().beta_tensor(&a.narrow(0, 0, 0).unwrap()),
                "beta is f32 of shape [0, 16]",
            ),
            (
                plain.clone().alpha_tensor(&factor(&Context::cpu(), 1.0)),
                "alpha and the rest of the call",
            ),
        ] {
            let error = gemm.run_into(&c).unwrap_err().to_string();
            assert!(error.contains(wanted), "{error}");
        }
        let error = plain.beta_tensor(&number).run().unwrap_err().to_string();
        assert!(error.contains("there is no C"), "{error}");
        Gemm::new(&a, &weights).beta_tensor(&number).run_into(&c).unwrap();
    }
}
