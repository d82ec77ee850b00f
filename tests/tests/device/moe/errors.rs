//! Operands that do not fit give errors with both numbers.

use super::{Case, Operands, PLAIN};
use tilewise::moe::{MoeLayer, Router, Routing, gather_matmul};
use tilewise::{Context, DType, Error, GroupEnds, QuantFormat, QuantizedTensor, Shards, Tensor};
use tilewise_tests::contexts;

#[track_caller]
pub(super) fn refused<T: std::fmt::Debug>(result: tilewise::Result<T>, kind: &str, words: &[&str]) {
    let error = result.unwrap_err();
    assert!(format!("{error:?}").starts_with(kind), "{error:?}");
    for word in words {
        assert!(error.to_string().contains(word), "{error:?}");
    }
}

#[test]
fn routers() {
    for context in contexts() {
        let zeros = |dtype, shape: &[usize]| Tensor::zeros(&context, dtype, shape).unwrap();
        let logits = zeros(DType::F32, &[3, 4]);
        refused(Router::new(5).run(&logits), "Shape", &["5 of 4 experts", "more than"]);
        refused(Router::new(0).run(&logits), "Shape", &["0 of 4"]);
        refused(Router::new(1).run(&zeros(DType::F32, &[3, 0])), "Shape", &["1 of 0"]);
        refused(Router::new(1).run(&zeros(DType::F32, &[3])), "Shape", &["[3]"]);
        refused(Router::new(1).run(&zeros(DType::U32, &[3, 4])), "Unsupported", &["u32"]);
        let biased = Router::new(1).bias(&zeros(DType::F32, &[5]));
        refused(biased.run(&logits), "Shape", &["[5]", "[4]"]);
        refused(Router::new(1).bias(&zeros(DType::U32, &[4])).run(&logits), "Unsupported", &[]);
        let by_groups = |k, n_group, topk_group| {
            Router::new(k).groups(n_group, topk_group).run(&logits).map(|_| ())
        };
        by_groups(4, 2, 2).unwrap();
        refused(by_groups(1, 3, 1), "Shape", &["3 groups of 4 experts"]);
        refused(by_groups(1, 0, 0), "Shape", &["0 groups of 4 experts"]);
        refused(by_groups(1, 8, 1), "Shape", &["8 groups of 4 experts"]);
        refused(by_groups(1, 2, 3), "Shape", &["3 of 2 groups"]);
        refused(by_groups(1, 2, 0), "Shape", &["1 experts", "0 of 2 groups"]);
        refused(by_groups(3, 2, 1), "Shape", &["3 experts", "1 of 2 groups of 4 experts"]);
        let other = Tensor::zeros(&Context::cpu(), DType::F32, &[4]).unwrap();
        refused(
            Router::new(1).bias(&other).run(&logits),
            "Misuse",
            &["wrong context: ", "the bias"],
        );
        let routing = Routing::zeros(&context, 2, 4, 1).unwrap();
        let error = Router::new(1).run_into(&logits, &routing);
        refused(error, "Shape", &["[2, 4, 1]", "[3, 4, 1]"]);
        refused(Routing::zeros(&context, 2, 4, 5), "Shape", &["5", "4"]);
        // Tensors of the caller's are checked.
        let replaced = |replace: fn(&mut Routing, Tensor), shape: &[usize], dtype| {
            let mut routing = Routing::zeros(&context, 3, 4, 1).unwrap();
            replace(&mut routing, Tensor::zeros(&context, dtype, shape).unwrap());
            Router::new(1).run_into(&logits, &routing)
        };
        for shape in [&[][..], &[3], &[3, 2]] {
            let weights = |routing: &mut Routing, weights| routing.weights = weights;
            refused(replaced(weights, shape, DType::F32), "Shape", &[]);
        }
        let u = DType::U32;
        refused(replaced(|all, order| all.order = order, &[3], u), "Shape", &["slots", "[3]"]);
        refused(replaced(|all, tokens| all.tokens = tokens, &[3], u), "Shape", &["tokens"]);
        refused(replaced(|all, places| all.places = places, &[3, 1], u), "Shape", &["[3, 1]"]);
        let offsets = |all: &mut Routing, none: Tensor| {
            all.offsets = GroupEnds::upload(none.context(), &[]).unwrap();
        };
        refused(replaced(offsets, &[0], u), "Shape", &["offsets"]);
        let of_host = |all: &mut Routing, other: Tensor| {
            all.offsets = GroupEnds::upload(other.context(), &[0, 1, 2, 3, 3]).unwrap();
        };
        refused(replaced(of_host, &[0], u), "Shape", &["offsets", "from the host"]);
        refused(
            Routing::zeros(&context, usize::MAX, 4, 4),
            "Shape",
            &["overflow: ", "kernels count to"],
        );
        let recorded = |context: &Context| {
            let device = context.device()?;
            let mut encoder = device.create_command_encoder(&Default::default());
            Some(Router::new(5).record(&mut encoder, &logits, &routing))
        };
        if let Some(result) = recorded(&context) {
            refused(result, "Shape", &["5 of 4"]);
        }
    }
}

/// Errors name the weights that a kernel does not take. Each product has a plan.
#[test]
fn kernels() {
    for context in contexts().into_iter().filter(|context| !context.is_cpu()) {
        let zeros = |shape: &[usize]| Tensor::zeros(&context, DType::F32, shape).unwrap();
        let (x, logits) = (zeros(&[4, 32]), zeros(&[4, 3]));
        let own = QuantizedTensor::zeros(&context, QuantFormat::Q4_0, &[3, 32, 32]).unwrap();
        let layer = MoeLayer::new(&own, &own, &own, 2).kernel("rows");
        let plans = layer.plans(&x, &logits).unwrap();
        assert_eq!(plans.len(), 3);
        for plan in plans {
            assert!(plan.choice.unwrap().to_string().starts_with("rows/"));
        }
        let dense = zeros(&[32, 32]);
        let shared = layer.shared(&dense, &dense, &dense);
        refused(
            shared.forward(&x, &logits),
            "DeviceLimit",
            &["gate of the shared experts: ", "no loader"],
        );
        refused(
            shared.plans(&x, &logits),
            "DeviceLimit",
            &["gate of the shared experts: ", "no loader"],
        );
        assert_eq!(shared.kernel("naive").plans(&x, &logits).unwrap().len(), 6);
        let fused = MoeLayer::fused(zeros(&[3, 64, 32]), &own, 2).kernel("rows");
        refused(
            fused.forward(&x, &logits),
            "DeviceLimit",
            &["gate and up of the experts: ", "no loader"],
        );
        let rhs = Tensor::upload(&context, &[0u32, 2, 1, 1], &[4]).unwrap();
        let plans = gather_matmul(&x, &own, None, &rhs).kernel("rows").plans().unwrap();
        assert_eq!(plans.len(), 1);
        assert_eq!(plans[0].problem.n, 32);
    }
}

#[test]
fn layers() {
    for context in contexts() {
        let zeros = |shape: &[usize]| Tensor::zeros(&context, DType::F32, shape).unwrap();
        let (x, logits) = (zeros(&[7, 8]), zeros(&[7, 3]));
        let (gate, down) = (zeros(&[3, 6, 8]), zeros(&[3, 8, 6]));
        let layer = MoeLayer::new(&gate, &gate, &down, 2);
        layer.forward(&x, &logits).unwrap();
        refused(layer.forward(&zeros(&[7, 9]), &logits), "Shape", &["[7, 9]", "is 8"]);
        refused(layer.forward(&zeros(&[7]), &logits), "Shape", &["[7]"]);
        refused(layer.forward(&x, &zeros(&[6, 3])), "Shape", &["[6, 3]", "[7, 8]"]);
        refused(
            layer.forward(&x, &zeros(&[7, 4])),
            "Shape",
            &["[7, 4] and gate [3, 6, 8]", "[T, 3]"],
        );
        refused(layer.forward_into(&x, &logits, &zeros(&[7, 7])), "Shape", &["[7, 7]", "[7, 8]"]);
        let words = Tensor::zeros(&context, DType::U32, &[7, 8]).unwrap();
        refused(layer.forward(&words, &logits), "Unsupported", &["x is u32", "of f32, f16, bf16"]);
        refused(layer.forward_into(&x, &logits, &words), "Shape", &["u32"]);
        let of = |gate: &Tensor, up: &Tensor, down: &Tensor, k: usize| {
            MoeLayer::new(gate, up, down, k).forward(&x, &logits)
        };
        refused(of(&gate, &gate, &down, 4), "Shape", &["4 of 3 experts"]);
        refused(of(&gate, &gate, &down, 0), "Shape", &["0 of 3"]);
        refused(
            of(&gate, &zeros(&[3, 5, 8]), &down, 1),
            "Shape",
            &["up", "[3, 5, 8]", "[3, 6, 8]"],
        );
        refused(of(&gate, &gate, &gate, 1), "Shape", &["down", "[3, 6, 8]", "[3, 8, 6]"]);
        // The width of x decides first, then the two weights that agree.
        let h_by_f = zeros(&[3, 8, 6]);
        refused(of(&gate, &h_by_f, &gate, 1), "Shape", &["up of", "[3, 8, 6]", "[3, 6, 8]"]);
        refused(of(&h_by_f, &gate, &gate, 1), "Shape", &["gate of", "[3, 8, 6]", "[3, 6, 8]"]);
        let wide = zeros(&[3, 6, 9]);
        refused(of(&wide, &wide, &down, 1), "Shape", &["gate of", "[3, 6, 9]", "[3, 6, 8]"]);
        let four = zeros(&[4, 6, 8]);
        refused(of(&four, &gate, &down, 1), "Shape", &["gate of", "[4, 6, 8]", "logits", "3 exp"]);
        let chosen = Router::new(1).choose(&logits).run().unwrap();
        let result = MoeLayer::new(&four, &gate, &down, 1).forward(&x, chosen);
        refused(result, "Shape", &["gate of", "[4, 6, 8]", "other weights are of 3 experts"]);
        refused(of(&zeros(&[3, 6, 9]), &gate, &down, 1), "Shape", &["gate of", "9]", "[3, 6, 8]"]);
        let codes = Tensor::zeros(&context, DType::U32, &[3, 6, 8]).unwrap();
        refused(of(&gate, &codes, &down, 1), "Unsupported", &["up of the experts is u32"]);
        let shards = Shards::new([&codes]).unwrap();
        let sharded = MoeLayer::new(&gate, shards, &down, 1);
        refused(sharded.forward(&x, &logits), "Unsupported", &["up of the experts is u32"]);
        refused(of(&zeros(&[6, 8]), &gate, &down, 1), "Shape", &["gate", "[6, 8]", "[3, 6, 8]"]);
        let odd = MoeLayer::fused(zeros(&[3, 11, 8]), &down, 1);
        refused(odd.forward(&x, &logits), "Shape", &["[3, 11, 8]", "[3, 12, 8]"]);
        let flat = MoeLayer::fused(zeros(&[12, 8]), zeros(&[8, 6]), 1);
        refused(flat.forward(&x, &logits), "Shape", &["[12, 8]", "[3, 2·F, H]"]);
        let short = MoeLayer::fused(zeros(&[3, 10, 8]), &down, 1);
        refused(short.forward(&x, &logits), "Shape", &["[3, 8, 6]", "[3, 8, 5]"]);
        let shared = layer.clone().shared(zeros(&[4, 9]), zeros(&[4, 9]), zeros(&[9, 4]));
        refused(shared.forward(&x, &logits), "Shape", &["[7, 8]", "shared experts is 9"]);
        let stacked = layer.clone().shared_fused(zeros(&[1, 4, 8]), zeros(&[8, 2]));
        refused(stacked.forward(&x, &logits), "Shape", &["[1, 4, 8]"]);
        let format = QuantFormat::MXFP4;
        let few = QuantizedTensor::zeros(&context, format, &[3, 6, 32]).unwrap();
        let mixed = MoeLayer::new(&gate, &few, &down, 1);
        refused(mixed.forward(&x, &logits), "Shape", &["[3, 6, 32]", "[3, 6, 8]"]);
        let other = Tensor::zeros(&Context::cpu(), DType::F32, &[3, 6, 8]).unwrap();
        refused(of(&gate, &other, &down, 1), "Misuse", &["wrong context: ", "up"]);
        let named = layer.clone().kernel("nonesuch");
        refused(named.forward(&x, &logits), "Misuse", &["no kernel is named ", "nonesuch"]);
        let wide = x.broadcast_to(&[2, 7, 8]).unwrap().as_strided(&[7, 8], &[0, 1], 0).unwrap();
        refused(layer.forward_into(&x, &logits, &wide), "Shape", &["strides: ", "overlap"]);
        let rows = |weight: &Tensor| {
            let [groups, n, k] = weight.shape() else { unreachable!() };
            weight.reshape(&[groups * n * k / 8, 8]).unwrap().narrow(0, 0, 7).unwrap()
        };
        refused(layer.forward_into(&x, &logits, &rows(&gate)), "Shape", &["aliasing: ", "gate"]);
        refused(layer.forward_into(&x, &logits, &rows(&down)), "Shape", &["aliasing: ", "down"]);
        let [own, other] = [zeros(&[12, 8]), zeros(&[8, 12])];
        let shared = layer.clone().shared(&own, &own, &other);
        refused(
            shared.forward_into(&x, &logits, &own.narrow(0, 0, 7).unwrap()),
            "Shape",
            &["aliasing: ", "gate"],
        );
        let y = zeros(&[7, 3]);
        let narrow = MoeLayer::new(zeros(&[3, 6, 3]), zeros(&[3, 6, 3]), zeros(&[3, 3, 6]), 1);
        narrow.forward_into(&y, &logits, &y).unwrap();
        if context.is_cpu() {
            continue;
        }
        let operands = Operands::new(Case { tokens: 2, ..PLAIN }, 1);
        let (gpu, cpu) = (operands.layer(&context), Context::cpu());
        let [x, logits] = operands.on(&cpu);
        refused(gpu.forward(&x, &logits), "Misuse", &["wrong context: ", "gate"]);
        let device = context.device().unwrap();
        let mut encoder = device.create_command_encoder(&Default::default());
        let on_cpu = operands.layer(&cpu);
        let y = Tensor::zeros(&cpu, DType::F32, &[2, PLAIN.h]).unwrap();
        refused(
            on_cpu.record(&mut encoder, &x, &logits, &y),
            "Misuse",
            &["wrong context: ", "needs a GPU"],
        );
    }
}

/// Biases that do not fit, and numbers that are none.
#[test]
fn biases_and_gates() {
    for context in contexts() {
        let zeros = |shape: &[usize]| Tensor::zeros(&context, DType::F32, shape).unwrap();
        let (x, logits) = (zeros(&[7, 8]), zeros(&[7, 3]));
        let (gate, down, both) = (zeros(&[3, 6, 8]), zeros(&[3, 8, 6]), zeros(&[3, 12, 8]));
        let [of_f, of_h, of_both] = [6, 8, 12].map(|n| zeros(&[3, n]));
        let apart = MoeLayer::new(&gate, &gate, &down, 2);
        let fused = MoeLayer::interleaved(&both, &down, 2);
        let run = |layer: &MoeLayer, biases: &[&Tensor]| {
            layer.clone().biases(biases.iter().copied()).forward(&x, &logits)
        };
        run(&apart, &[&of_f, &of_f, &of_h]).unwrap();
        run(&fused, &[&of_both, &of_h]).unwrap();
        run(&fused, &[]).unwrap();
        let words = ["2 biases of the experts", "gate, up, down"];
        refused(run(&apart, &[&of_f, &of_h]), "Shape", &words);
        refused(run(&fused, &[&of_f, &of_f, &of_h]), "Shape", &["3 biases", "gate and up, down"]);
        let words = ["bias of up of the experts", "[3, 8]", "[3, 6]"];
        refused(run(&apart, &[&of_f, &of_h, &of_h]), "Shape", &words);
        refused(run(&apart, &[&of_f, &of_f, &zeros(&[8])]), "Shape", &["down", "[8]", "[3, 8]"]);
        let codes = Tensor::zeros(&context, DType::U32, &[3, 6]).unwrap();
        refused(run(&apart, &[&codes, &of_f, &of_h]), "Unsupported", &["bias of gate", "is u32"]);
        let other = Tensor::zeros(&Context::cpu(), DType::F32, &[3, 6]).unwrap();
        let words = ["wrong context: ", "bias of gate"];
        refused(run(&apart, &[&other, &of_f, &of_h]), "Misuse", &words);
        let whole = zeros(&[7, 8]);
        let bias = whole.reshape(&[56]).unwrap().narrow(0, 0, 24).unwrap();
        let biased = apart.clone().biases([&of_f, &of_f, &bias.reshape(&[3, 8]).unwrap()]);
        refused(biased.forward_into(&x, &logits, &whole), "Shape", &["aliasing: ", "a bias"]);
        for (alpha, limit, word) in [(f32::NAN, 7.0, "alpha is NaN"), (1.0, -1.0, "limit is -1")] {
            let gated = apart.clone().swiglu_oai(alpha, limit);
            refused(gated.forward(&x, &logits), "Misuse", &["swiglu_oai", word]);
        }
    }
}

#[test]
fn gathered_products() {
    for context in contexts() {
        let zeros = |dtype, shape: &[usize]| Tensor::zeros(&context, dtype, shape).unwrap();
        let floats = |shape: &[usize]| zeros(DType::F32, shape);
        let words = |shape: &[usize]| zeros(DType::U32, shape);
        let (x, w, rhs) = (floats(&[4, 5]), floats(&[3, 5, 2]), words(&[4]));
        gather_matmul(&x, &w, None, &rhs).run().unwrap();
        refused(
            gather_matmul(&x, &w, None, &words(&[3])).run(),
            "Shape",
            &["rhs of shape [3]", "x of shape [4]"],
        );
        let lhs = words(&[6]);
        let error = gather_matmul(&x, &w, Some(&lhs), &rhs).run();
        refused(error, "Shape", &["rhs of shape [4]", "lhs of shape [6]"]);
        let error = gather_matmul(&x, floats(&[3, 6, 2]), None, &rhs).run();
        refused(error, "Shape", &["[4, 5]", "[3, 6, 2]"]);
        refused(gather_matmul(&x, floats(&[5, 2]), None, &rhs).run(), "Shape", &["[5, 2]"]);
        refused(gather_matmul(&x, &w, None, &floats(&[4])).run(), "Unsupported", &["rhs in f32"]);
        refused(gather_matmul(&x, &w, None, &words(&[2, 2])).run(), "Shape", &["[2, 2]"]);
        let first = w.narrow(0, 0, 1).unwrap().squeeze(0).unwrap().narrow(0, 0, 4).unwrap();
        refused(gather_matmul(&x, &w, None, &rhs).run_into(&first), "Shape", &["aliasing: ", "w"]);
        let turned = floats(&[2, 4, 5]).transpose(0, 1).unwrap();
        let error = gather_matmul(&turned, &w, None, &words(&[4, 2])).run();
        refused(error, "Shape", &["strides: ", "[8, 5]"]);
        let short = gather_matmul(&x, &w, None, &rhs).run_into(&floats(&[4, 3]));
        refused(short, "Shape", &["[4, 3]", "[4, 2]"]);
        let half = gather_matmul(&x, &w, None, &rhs).out_dtype(DType::F16);
        refused(half.run_into(&floats(&[4, 2])), "Misuse", &["is f32", "says f16"]);
        let other = Tensor::zeros(&Context::cpu(), DType::U32, &[4]).unwrap();
        refused(gather_matmul(&x, &w, None, &other).run(), "Misuse", &["wrong context: ", "rhs"]);
        let error: Result<_, Error> = gather_matmul(&x, &w, None, &rhs).kernel("none").run();
        refused(error, "Misuse", &["no kernel is named ", "none"]);
    }
}
