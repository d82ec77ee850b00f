//! Few large groups: each is a dense product.

use half::f16;
use tilewise::{Activation, Axis, Context, DType, Error, Gemm, GroupEnds, Result, Tensor};
use tilewise_tests::{Adapter, adapters, contexts};

/// Rows of a large group, and the sizes of the products here. The last rows belong to no group.
const LARGE: u32 = 256;
const ENDS: [u32; 4] = [LARGE, LARGE, 2 * LARGE + 52, 2 * LARGE + 52];
const M: usize = 2 * LARGE as usize + 54;
const N: usize = (1 << 24) / LARGE as usize;
const K: usize = 8;

/// Element i of every operand: a whole number, so that all sums are exact.
fn number(i: usize) -> f32 {
    (i * 5 % 11) as f32
}

fn numbers(context: &Context, shape: &[usize]) -> Result<Tensor> {
    let numbers = (0..shape.iter().product()).map(|i| f16::from_f32(number(i)));
    Tensor::upload(context, &numbers.collect::<Vec<_>>(), shape)
}

/// Ends that the host knows, and the same ends on the device. Groups of the latter are one product.
fn both(context: &Context, ends: &[u32]) -> Result<[GroupEnds; 2]> {
    let known = GroupEnds::upload(context, ends)?;
    let tensor = Tensor::upload(context, ends, &[ends.len()])?;
    Ok([known, GroupEnds::from_tensor(&tensor)?])
}

/// Software devices are slow with so many elements, so they run one of the two forms.
#[test]
fn give_what_one_product_gives() -> Result<()> {
    let own = |adapter: &Adapter| [0, 1].map(|form| adapter.has_turn(form));
    let devices = adapters().iter().map(|adapter| (adapter.context.clone(), own(adapter)));
    for (context, has_turn) in devices.chain([(Context::cpu(), [false, true])]) {
        let of = |shape: &[usize]| numbers(&context, shape);
        let (x, stack) = (of(&[M, K])?, of(&[4, K, N])?);
        let (rows, each) = (of(&[M])?, of(&[4, N])?);
        let beside = of(&[M, N])?;
        let half = Tensor::upload(&context, &[0.5f32], &[1])?;
        let plain = |ends: &GroupEnds| Gemm::grouped(&x, &stack, ends);
        let added = |ends: &GroupEnds| {
            plain(ends).bias(&each).activation(Activation::Relu).residual(&beside)
        };
        let start = [&[0][..], &ENDS].concat();
        let forms: [&dyn Fn(&GroupEnds) -> Gemm; 2] = [
            &|ends| {
                plain(ends).bias_along(&rows, Axis::M).alpha_tensor(&half).beta(2.0).add_to(&beside)
            },
            &added,
        ];
        let mut wanted = Vec::new();
        let turns = forms.iter().zip([&start[..], &ENDS]).zip(has_turn);
        for ((form, ends), _) in turns.filter(|(_, has_turn)| *has_turn) {
            let [gemm, one] = both(&context, ends)?.each_ref().map(form);
            assert_eq!([gemm.plans()?.len(), one.plans()?.len()], [2, 1]);
            let got = gemm.run()?;
            assert_eq!(got.shape(), [M, N]);
            wanted = one.run()?.read_bytes_blocking()?;
            assert!(got.read_bytes_blocking()? == wanted, "{context:?}");
            context.warm_up_problems(&gemm.problems()?)?;
        }
        // The expected results of the last form: relu(x·w + bias) + beside, with positive numbers
        // only; then zeros.
        let some = [(0, 0), (255, 0), (256, 2), (563, 2), (564, 4)];
        for (row, group) in some.into_iter().filter(|_| has_turn[1]) {
            for column in [0, 1, N - 1] {
                let element = |k: usize| number(row * K + k) * number((group * K + k) * N + column);
                let sum: f32 = (0..K).map(element).sum();
                let sum = sum + number(group * N + column) + number(row * N + column);
                let at = 2 * (row * N + column);
                let got = f16::from_le_bytes([wanted[at], wanted[at + 1]]).to_f32();
                assert_eq!(got, if group < 4 { sum } else { 0.0 }, "{context:?} {row} {column}");
            }
        }
        let [ends, _] = both(&context, &ENDS)?;
        let gemm = added(&ends);
        let text = gemm.explain()?;
        for heading in ["group 0, rows 0 to 256: few large groups", "group 2, rows 256 to 564: "] {
            assert!(text.contains(heading), "{text}");
        }
        let whole = gemm.clone().kernel("naive").problems()?;
        assert_eq!(whole.iter().map(|problem| problem.entries()).collect::<Vec<_>>(), [4]);
        let forced = gemm.choices()?.first().map(|own| gemm.kernel(own.to_string()));
        assert!(forced.is_none_or(|forced| forced.plans().is_ok_and(|plans| plans.len() == 1)));
    }
    Ok(())
}

/// Other groups are one product.
#[test]
fn are_few_and_large_and_known() -> Result<()> {
    for context in contexts() {
        let zeros = |dtype, shape: &[usize]| Tensor::zeros(&context, dtype, shape);
        let of = |dtype, ends: &[u32]| {
            let x = zeros(dtype, &[5 * LARGE as usize, K])?;
            let stack = zeros(dtype, &[ends.len(), K, N])?;
            Ok(Gemm::grouped(&x, &stack, &GroupEnds::upload(&context, ends)?))
        };
        let ends = |count: u32| (1..=count).map(|end| end * LARGE).collect::<Vec<_>>();
        for (dtype, ends, are_large) in [
            (DType::F16, ends(1), true),
            (DType::F16, ends(4), true),
            (DType::F16, ends(5), false),
            (DType::F16, vec![LARGE, 2 * LARGE - 1], false),
            (DType::F16, vec![0, 0], false),
            (DType::F32, ends(2), false),
        ] {
            let gemm: Gemm = of(dtype, &ends)?;
            let parts = if are_large { ends.len() } else { 1 };
            assert_eq!(gemm.plans()?.len(), parts, "{dtype} {ends:?}");
            assert_eq!(gemm.explain()?.contains("few large groups"), are_large, "{dtype} {ends:?}");
        }
        let indices = Tensor::zeros(&context, DType::U32, &[5 * LARGE as usize])?;
        assert_eq!(of(DType::F16, &ends(2))?.gather_rows(&indices).plans()?.len(), 1);
    }
    Ok(())
}

/// Errors are the same as for one product, even if a part by itself would be right.
#[test]
fn are_checked_as_a_whole() -> Result<()> {
    for context in contexts() {
        let (from, beyond) = (LARGE as usize * K, LARGE as usize * K + M * N);
        let arena = Tensor::zeros(&context, DType::F16, &[beyond + M * K])?;
        let at = |start: usize, shape: &[usize]| {
            arena.narrow(0, start, shape.iter().product())?.reshape(shape)
        };
        let stack = numbers(&context, &[4, K, N])?;
        // The first group's rows of C overlap the last group's rows of A, and nothing else.
        let (on_last, y) = (at(0, &[M, K])?, at(from, &[M, N])?);
        let apart = at(beyond, &[M, K])?;
        let of = |ends: &GroupEnds, a: &Tensor, c: &Tensor| {
            Gemm::grouped(a, &stack, ends).run_into(c).unwrap_err().to_string()
        };
        let short = Tensor::zeros(&context, DType::F16, &[M - 2, N])?;
        let few = Tensor::zeros(&context, DType::F16, &[LARGE as usize, K])?;
        let [ends, on_device] = both(&context, &ENDS)?;
        let row = Tensor::zeros(&context, DType::F16, &[1, N])?.broadcast_to(&[M, N])?;
        for (a, c) in [(&on_last, &y), (&apart, &short), (&apart, &row)] {
            assert_eq!(of(&ends, a, c), of(&on_device, a, c));
        }
        assert!(of(&ends, &few, &short).contains("the last one is"));
        let bias = numbers(&context, &[3, N])?;
        let gemm = Gemm::grouped(&apart, &stack, &ends).bias(&bias);
        assert!(matches!(gemm.run(), Err(Error::Shape(text)) if text.contains("bias")));
    }
    Ok(())
}
