//! Draws from a softmax, computed in f64 from the same random bits.

use super::{Case, DType, FLOATS, Given, LIES, Lies, Rng, Wanted, boxed, numbers, rows};
use tilewise::{Tensor, ops};

/// Options of a draw: temperature, and the three filters.
#[derive(Clone, Copy, Debug)]
struct Options {
    temperature: f32,
    k: usize,
    p: f32,
    min_p: f32,
}

const ALL: Options = Options { temperature: 1.0, k: usize::MAX, p: 1.0, min_p: 0.0 };

const OPTIONS: [Options; 9] = [
    ALL,
    Options { temperature: 0.0, ..ALL },
    Options { temperature: 3.0, k: 2, ..ALL },
    Options { temperature: 0.7, p: 0.6, ..ALL },
    Options { temperature: 1.5, min_p: 0.3, ..ALL },
    Options { temperature: 2.0, k: 5, p: 0.75, min_p: 0.1 },
    Options { temperature: 0.0, k: 3, p: 0.5, min_p: 0.5 },
    Options { temperature: 40.0, k: 1, ..ALL },
    Options { temperature: 30.0, p: 0.97, ..ALL },
];

/// Shapes of the logits.
const SHAPES: [&[usize]; 8] =
    [&[1], &[7, 3], &[2, 31], &[300, 2], &[2, 3, 40], &[5, 257], &[1, 2100], &[0, 4]];

pub(super) fn cases() -> Vec<Case> {
    let mut rng = Rng::new(41);
    let mut cases = Vec::new();
    for (turn, shape) in SHAPES.into_iter().enumerate() {
        for (of, options) in OPTIONS.into_iter().enumerate() {
            cases.push(draws(&mut rng, shape, options, turn + of));
        }
    }
    // Nearly all draws are looked at.
    let all = || cases.iter().flat_map(|case| &case.wanted);
    assert!(50 * all().filter(|(_, error)| *error > 0.0).count() < all().count());
    cases
}

/// Rows of more elements than a small workgroup has invocations, rows of neighbours in f32, and
/// rows of nearly equal sums.
pub(super) fn in_parts() -> Vec<Case> {
    let rng = &mut Rng::new(42);
    let long = draws(rng, &[2, 17_000], OPTIONS[5], 1);
    let near = [(OPTIONS[2], 3), (OPTIONS[5], 8), (OPTIONS[3], 13)]
        .map(|(options, turn)| draws(rng, &[12, 24], options, turn));
    let equal = [0.5, 2.0].map(|temperature| of_equal_scores(rng, temperature));
    [long].into_iter().chain(near).chain(equal).collect()
}

fn draws(rng: &mut Rng, shape: &[usize], options: Options, turn: usize) -> Case {
    let dtype = if turn % 5 == 3 { DType::F32 } else { FLOATS[turn % 3] };
    let mut logits = numbers(rng, shape, 6.0);
    // There are ties, infinities, NaN, numbers whose exponentials are beyond f32, and neighbours.
    match turn % 5 {
        0 => logits.iter_mut().for_each(|x| *x = x.round() / 2.0),
        1 => logits.iter_mut().step_by(3).for_each(|x| *x = f64::NEG_INFINITY),
        2 => logits.iter_mut().for_each(|x| *x += 90.0),
        3 => {
            let places = rng.permutation(logits.len()).into_iter();
            let n = shape[shape.len() - 1].max(1);
            let near = |place: usize| 1.0 + (place % n) as f64 * 2f64.powi(-23);
            logits.iter_mut().zip(places).for_each(|(x, place)| *x = near(place));
        }
        _ => {}
    }
    if shape == [7, 3] {
        (logits[1], logits[5], logits[8]) = (f64::NAN, f64::INFINITY, f64::NEG_INFINITY);
        logits[9..12].fill(f64::NEG_INFINITY);
    }
    let logits = Given::new(dtype, LIES[turn % 4], shape, logits);
    let seed = rng.bits();
    let lead = &shape[..shape.len() - 1];
    let counters: Vec<f64> = (0..lead.iter().product()).map(|i| (9 + 5 * i) as f64).collect();
    // The counter is a number, a tensor of one element, or one of an element for each row.
    let counter = match turn % 3 {
        1 if !lead.is_empty() => {
            Some(Given::new(DType::U32, Lies::TransposedWithin, lead, counters.clone()))
        }
        2 => Some(Given::new(DType::U32, Lies::Packed, &[1], vec![70_000.0])),
        _ => None,
    };
    let counter_of = |row: usize| match &counter {
        Some(own) => own.values[row % own.values.len()] as u32,
        None => 3,
    };
    let draw = |(row, logits): (usize, &[f64])| {
        drawn(logits, options, Noise::new(seed, counter_of(row), row as u32))
    };
    let wanted = match shape.contains(&0) {
        true => Vec::new(),
        false => rows(shape, &logits.values).enumerate().map(draw).collect(),
    };
    let own = counter.is_some();
    Case {
        name: format!("sample of {shape:?} {dtype} {:?}, {options:?}, {own}", logits.lies),
        wanted,
        inputs: [Some(logits), counter].into_iter().flatten().collect(),
        out: (DType::U32, lead.to_vec(), LIES[turn / 2 % 4]),
        in_place: None,
        on_units: false,
        op: Box::new(move |given: &[Tensor]| {
            let Options { temperature, k, p, min_p } = options;
            let counter = match given.get(1) {
                Some(tensor) => ops::Position::from(tensor),
                None => 3.into(),
            };
            let sample = ops::sample(&given[0], seed).temperature(temperature).at(counter);
            boxed(sample.top_k(k).top_p(p).min_p(min_p))
        }),
    }
}

/// Rows of two logits that count, whose sums with their noise differ by little. In most rows one
/// of them has the noise of a small u.
fn of_equal_scores(rng: &mut Rng, temperature: f32) -> Case {
    let (shape, seed, t) = ([12, 300], rng.bits(), f64::from(temperature));
    let mut logits = vec![f64::NEG_INFINITY; 12 * 300];
    for (row, logits) in logits.chunks_mut(300).enumerate() {
        let noise = Noise::new(seed, 3, row as u32);
        let is_rare = |i: &usize| (4.9..5.8).contains(&noise.of(*i as u32));
        let first = (0..300).find(is_rare).unwrap_or(7);
        let second = (first + 1 + rng.below(299)) % 300;
        let margin = [4e-4, -4e-4][row % 2] * t;
        logits[first] = margin - t * noise.of(first as u32);
        logits[second] = -t * noise.of(second as u32);
    }
    let logits = Given::new(DType::F32, Lies::Within, &shape, logits);
    let options = Options { temperature, ..ALL };
    let draw = |(row, logits): (usize, &[f64])| {
        let (token, _) = drawn(logits, options, Noise::new(seed, 3, row as u32));
        (token, 0.0)
    };
    Case {
        name: format!("sample of nearly equal sums, {temperature}"),
        wanted: rows(&shape, &logits.values).enumerate().map(draw).collect(),
        inputs: vec![logits],
        out: (DType::U32, vec![12], Lies::Packed),
        in_place: None,
        on_units: false,
        op: Box::new(move |given: &[Tensor]| {
            boxed(ops::sample(&given[0], seed).temperature(temperature).at(3))
        }),
    }
}

/// The index that is drawn. It is not looked at if the two best candidates, or a filter, are so
/// close that the rounding of f32 decides.
fn drawn(logits: &[f64], options: Options, noise: Noise) -> Wanted {
    let order = |x: f64| if x.is_nan() { f64::MAX } else { x.clamp(-1e300, 1e300) };
    let largest = logits.iter().map(|&x| order(x)).fold(-1e300, f64::max);
    let (mut sorted, t) = (logits.to_vec(), f64::from(options.temperature));
    sorted.sort_by(|a, b| order(*b).total_cmp(&order(*a)));
    let weight = |x: f64| ((order(x) - largest) / t.max(1e-30)).exp();
    let mut least = sorted.get(options.k.saturating_sub(1)).map_or(-1e300, |&x| order(x));
    let mut close = false;
    if options.p < 1.0 && largest.abs() < 1e300 {
        let kept = || sorted.iter().filter(|&&x| order(x) >= least);
        let bound = f64::from(options.p) * kept().map(|&x| weight(x)).sum::<f64>();
        let mut sum = 0.0;
        let mut bar = largest;
        for &x in kept() {
            if sum < bound || order(x) == bar {
                bar = order(x);
            }
            sum += weight(x);
            close |= (sum - bound).abs() < 1e-5 * bound;
        }
        least = bar;
    }
    if options.min_p > 0.0 && largest.abs() < 1e300 {
        let bound = largest + t * f64::from(options.min_p).ln();
        close |= logits.iter().any(|&x| (x - bound).abs() < 1e-5 && bound != largest);
        least = least.max(bound);
    }
    let kept = (0..logits.len()).filter(|&i| order(logits[i]) >= least);
    let score = |i: usize| order(logits[i] + t * noise.of(i as u32));
    let mut scores: Vec<_> = kept.map(|i| (score(i), i)).collect();
    scores.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let second = scores.get(1).map_or(f64::NEG_INFINITY, |next| next.0);
    close |= t > 0.0 && scores[0].0.abs() < 1e300 && scores[0].0 - second < 1e-4 * (1.0 + t);
    (scores[0].1 as f64, if close { f64::INFINITY } else { 0.0 })
}

/// Numbers of the Gumbel distribution.
struct Noise([u32; 2]);

impl Noise {
    fn new(seed: u64, counter: u32, row: u32) -> Self {
        let low = mixed(mixed(mixed(seed as u32).wrapping_add(counter)).wrapping_add(row));
        let high = mixed(mixed(mixed((seed >> 32) as u32) ^ counter).wrapping_add(row));
        Noise([low, high])
    }

    fn of(&self, i: u32) -> f64 {
        let bits = mixed(mixed(i ^ self.0[0]).wrapping_add(self.0[1]));
        let u = (f64::from(bits) + 0.5) / 2f64.powi(32);
        -(-(-u).ln_1p()).ln()
    }
}

fn mixed(key: u32) -> u32 {
    let mut n = key;
    n = (n ^ (n >> 16)).wrapping_mul(0x7feb_352d);
    n = (n ^ (n >> 15)).wrapping_mul(0x846c_a68b);
    n ^ (n >> 16)
}
