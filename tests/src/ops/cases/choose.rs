//! Weights and experts of tokens.

use super::{Case, DType, FLOATS, Given, Half, LIES, Lies, Rng, numbers};
use tilewise::Tensor;
use tilewise::moe::{Router, Scoring};
use tilewise_oracle::moe::Choice;

/// Tokens, experts, and the experts of a token: one and many of each. Some rows are shared by
/// several invocations.
const SHAPES: [([usize; 2], usize); 9] = [
    ([1, 1], 1),
    ([2, 2], 2),
    ([9, 6], 3),
    ([3, 40], 6),
    ([1, 128], 8),
    ([70, 3], 2),
    ([5, 9], 9),
    ([0, 4], 2),
    ([2, 300], 270),
];

/// Tokens, experts, the experts of a token, the number of groups, and how many of them a token
/// chooses: one group, all groups, groups of one expert, and all experts of the chosen groups. Some
/// workgroups have several rows, and some rows have more groups than invocations.
const GROUPED: [([usize; 2], usize, [usize; 2]); 8] = [
    ([2, 6], 6, [1, 1]),
    ([3, 8], 8, [2, 2]),
    ([9, 12], 3, [4, 2]),
    ([6, 5], 2, [5, 3]),
    ([2, 300], 20, [30, 4]),
    ([5, 40], 10, [8, 2]),
    ([66, 6], 2, [2, 1]),
    ([1, 300], 8, [300, 100]),
];

/// Scoring, whether weights are normalized, and whether there is a bias.
const ROUTERS: [(Scoring, bool, bool); 8] = [
    (Scoring::Softmax, true, false),
    (Scoring::Softmax, false, false),
    (Scoring::Softmax, true, true),
    (Scoring::Softmax, false, true),
    (Scoring::Sigmoid, true, false),
    (Scoring::Sigmoid, false, false),
    (Scoring::Sigmoid, true, true),
    (Scoring::Sigmoid, false, true),
];

pub(super) fn cases() -> Vec<Case> {
    let mut rng = Rng::new(21);
    let mut cases = Vec::new();
    for (turn, (shape, k)) in SHAPES.into_iter().enumerate() {
        for (of, router) in ROUTERS.into_iter().enumerate() {
            cases.extend(of_router(&mut rng, shape, (k, [1, 1]), router, turn + of));
        }
    }
    for (turn, (shape, k, groups)) in GROUPED.into_iter().enumerate() {
        for (of, router) in ROUTERS.into_iter().enumerate().skip(turn % 2).step_by(2) {
            cases.extend(of_router(&mut rng, shape, (k, groups), router, turn + of));
        }
    }
    cases
}

/// Logits of few different numbers, so that there are ties. If there are at least five tokens, the
/// first ones are special: they have NaN; +∞; only −∞; two neighbouring finite numbers; and numbers
/// that differ so much that their softmax vanishes. If invocations have several experts each, the
/// largest logit is the first one of an invocation; in the next token the two largest are second
/// ones.
fn logits(rng: &mut Rng, [tokens, experts]: [usize; 2]) -> Vec<f64> {
    let mut logits = numbers(rng, &[tokens, experts], 5.0);
    logits.iter_mut().for_each(|logit| *logit = logit.round() / 2.0);
    if tokens >= 5 {
        let [nan, infinite, none, one, far] = [0, 1, 2, 3, 4].map(|token| token * experts);
        logits[nan + experts - 1] = f64::NAN;
        logits[infinite + 1] = f64::INFINITY;
        logits[none..none + 2 * experts].fill(f64::NEG_INFINITY);
        logits[one] = f64::from(1.5f32.next_down());
        logits[one + experts / 2] = 1.5;
        for (i, logit) in logits[far..far + experts].iter_mut().enumerate() {
            *logit = [0.0, -300.0, -301.5][i % 3];
        }
    }
    if experts > 256 && tokens > 1 {
        (logits[10], logits[266]) = (200.0, 2.5);
        (logits[experts + 290], logits[experts + 291]) = (200.0, 199.0);
    }
    logits
}

/// The weights and the experts that a router chooses.
fn of_router(
    rng: &mut Rng,
    shape: [usize; 2],
    (k, groups): (usize, [usize; 2]),
    (scoring, normalize, biased): (Scoring, bool, bool),
    turn: usize,
) -> [Case; 2] {
    let dtype = FLOATS[turn % 3];
    let mut logits = logits(rng, shape);
    // Biases are in eighths: sums with scores differ by more than the scores' errors.
    let mut bias = numbers(rng, &shape[1..], 6.0);
    bias.iter_mut().for_each(|bias| *bias = bias.round() / 8.0);
    // Some biases are so low that experts whose softmax vanishes are chosen before the token's
    // largest logit.
    bias.iter_mut().step_by(3).for_each(|bias| *bias -= 3.0);
    // Different scores and biases may have equal sums. So that no rounding decides between groups,
    // no two numbers are equal there, except those of the first two groups, which are the largest.
    // If no other token does, the last one has equal logits.
    if biased && groups[0] > 1 {
        let (size, last) = (shape[1] / groups[0], (shape[0] - 1) * shape[1]);
        let apart = numbers(rng, &[logits.len()], 0.2);
        logits.iter_mut().zip(apart).for_each(|(logit, apart)| *logit += apart);
        logits[last..].fill(0.5);
        bias = numbers(rng, &shape[1..], 1.0);
        bias.iter_mut().step_by(3).for_each(|bias| *bias -= 3.0);
        bias[..size].iter_mut().for_each(|bias| *bias += 1.5);
        bias.copy_within(..size, size);
    }
    let logits = Given::new(dtype, LIES[turn % 4], &shape, logits);
    let vector = Given::new(FLOATS[turn / 2 % 3], Lies::TransposedWithin, &shape[1..], bias);
    let scale = [1.0, 2.5, -0.3][turn / 3 % 3];
    let bias_of = biased.then_some(&vector.values[..]);
    let choice = Choice { k, scoring, normalize, scale: f64::from(scale), bias: bias_of, groups };
    let rows = logits.values.chunks(shape[1]).flat_map(|row| choice.run(row));
    let (experts, weights): (Vec<_>, Vec<_>) =
        rows.map(|(expert, weight, error)| ((expert as f64, 0.0), (weight, error))).unzip();
    let name = format!("choose {k} of {shape:?} {dtype} {scoring:?} {normalize} {biased} {scale}")
        + &format!(" {groups:?}");
    let inputs: Vec<Given> = [logits].into_iter().chain(biased.then_some(vector)).collect();
    let dtypes = [DType::F32, DType::U32];
    let mut which = 0..;
    [weights, experts].map(|wanted| {
        let which = which.next().unwrap();
        let other = (dtypes[1 - which], None);
        Case {
            name: format!("{name}: {which}"),
            wanted,
            inputs: inputs.clone(),
            out: (dtypes[which], vec![shape[0], k], LIES[(turn + 2) % 4]),
            in_place: None,
            on_units: false,
            op: Box::new(move |given: &[Tensor]| {
                let [n_group, topk_group] = groups;
                let router = Router::new(k).scoring(scoring).normalize(normalize).scale(scale);
                let router = router.groups(n_group, topk_group);
                let router = given[1..].iter().fold(router, |router, bias| router.bias(bias));
                Box::new(Half(router.choose(&given[0]), which, other.clone()))
            }),
        }
    })
}
