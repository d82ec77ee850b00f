//! Attention.

use super::{Case, DType, Given, Lies, Rng, Wanted, ops};
use super::{ULP, boxed, broadcast, numbers};
use DType::{BF16, F16, F32};
use Lies::{Packed, Transposed, TransposedWithin, Within};
use std::ops::Range;
use tilewise::Tensor;

/// A position or a length, by number or by a tensor of this shape.
#[derive(Clone, Copy)]
enum At {
    Number(usize),
    Tensor(&'static [usize], &'static [usize]),
}

/// A call.
#[derive(Clone, Copy)]
struct Call {
    /// The first axes.
    lead: &'static [usize],
    /// Heads of queries and of keys; none, if tensors have no such axis.
    heads: Option<[usize; 2]>,
    /// Queries, keys, and the elements of a key and of a value.
    sizes: [usize; 4],
    /// Types of q, k, v and the output.
    dtypes: [DType; 4],
    /// The places of q, k, v and the output.
    lies: [Lies; 4],
    causal: Option<At>,
    lengths: Option<At>,
    window: Option<usize>,
    softcap: Option<f32>,
    scale: Option<f32>,
    /// Shapes of mask and sinks.
    mask: Option<&'static [usize]>,
    sinks: Option<&'static [usize]>,
}

const PLAIN: Call = Call {
    lead: &[],
    heads: Some([1, 1]),
    sizes: [1, 1, 1, 1],
    dtypes: [F32; 4],
    lies: [Packed; 4],
    causal: None,
    lengths: None,
    window: None,
    softcap: None,
    scale: None,
    mask: None,
    sinks: None,
};

const HALVES: [DType; 4] = [F16; 4];

const CALLS: [Call; 41] = [
    PLAIN,
    Call { heads: None, sizes: [1, 3, 1, 2], ..PLAIN },
    Call { heads: None, sizes: [5, 7, 3, 3], lies: [Within, Transposed, Within, Packed], ..PLAIN },
    Call { heads: Some([2, 1]), sizes: [3, 5, 4, 8], causal: Some(At::Number(2)), ..PLAIN },
    Call { heads: Some([4, 2]), sizes: [1, 9, 6, 5], dtypes: [F16, BF16, F16, F16], ..PLAIN },
    Call { lead: &[2], heads: Some([2, 2]), sizes: [3, 4, 5, 7], dtypes: [BF16; 4], ..PLAIN },
    // Queries that see no key, and queries that see more keys than there are.
    Call { sizes: [4, 3, 4, 4], lengths: Some(At::Number(0)), ..PLAIN },
    Call {
        lead: &[3],
        heads: Some([2, 1]),
        sizes: [2, 6, 4, 4],
        lengths: Some(At::Tensor(&[3], &[0, 4, 4_000_000_000])),
        ..PLAIN
    },
    Call {
        lead: &[2],
        heads: Some([2, 2]),
        sizes: [2, 7, 3, 4],
        dtypes: HALVES,
        causal: Some(At::Tensor(&[2, 2], &[0, 3, 5, 4_294_967_295])),
        window: Some(3),
        ..PLAIN
    },
    Call { sizes: [5, 9, 8, 8], causal: Some(At::Number(3)), window: Some(2), ..PLAIN },
    Call { sizes: [2, 9, 8, 8], causal: Some(At::Number(30)), window: Some(24), ..PLAIN },
    Call { sizes: [2, 5, 8, 8], causal: Some(At::Number(9)), window: Some(4), ..PLAIN },
    Call { sizes: [3, 6, 4, 4], softcap: Some(0.5), scale: Some(3.0), ..PLAIN },
    Call {
        heads: Some([3, 1]),
        sizes: [2, 5, 4, 4],
        softcap: Some(2.0),
        mask: Some(&[2, 5]),
        sinks: Some(&[3, 1, 1]),
        ..PLAIN
    },
    Call { sizes: [5, 9, 4, 5], mask: Some(&[9]), scale: Some(-0.5), ..PLAIN },
    Call {
        lead: &[2],
        heads: Some([4, 2]),
        sizes: [3, 5, 2, 4],
        mask: Some(&[2, 1, 3, 5]),
        causal: Some(At::Number(1)),
        dtypes: [F32, F16, BF16, F32],
        ..PLAIN
    },
    Call { heads: Some([6, 2]), sizes: [2, 8, 8, 4], mask: Some(&[6, 1, 8]), ..PLAIN },
    Call { heads: Some([5, 1]), sizes: [1, 6, 4, 4], sinks: Some(&[5, 1, 1]), ..PLAIN },
    Call {
        heads: Some([2, 1]),
        sizes: [2, 6, 4, 6],
        sinks: Some(&[1]),
        lengths: Some(At::Number(0)),
        dtypes: [F32, F32, F32, BF16],
        lies: [Packed, Packed, Packed, Within],
        ..PLAIN
    },
    Call { heads: Some([2, 2]), sizes: [3, 0, 4, 4], lies: [Packed; 4], ..PLAIN },
    Call { heads: Some([2, 2]), sizes: [0, 3, 4, 4], ..PLAIN },
    Call { heads: Some([0, 2]), sizes: [2, 3, 4, 4], ..PLAIN },
    // Several tiles of rows, steps of keys, and blocks for an invocation.
    Call { heads: Some([3, 1]), sizes: [7, 70, 4, 3], causal: Some(At::Number(60)), ..PLAIN },
    Call { heads: Some([2, 2]), sizes: [1, 131, 8, 4], dtypes: HALVES, ..PLAIN },
    Call { sizes: [9, 67, 80, 5], lies: [Within, Packed, Packed, Transposed], ..PLAIN },
    Call {
        heads: Some([8, 1]),
        sizes: [1, 70, 64, 64],
        dtypes: [F16, F16, F16, F32],
        lies: [Packed, TransposedWithin, Within, Within],
        lengths: Some(At::Tensor(&[1], &[66])),
        ..PLAIN
    },
    Call {
        lead: &[2],
        heads: Some([2, 1]),
        sizes: [4, 33, 12, 130],
        causal: Some(At::Tensor(&[2], &[29, 3])),
        dtypes: [F32, BF16, F16, F16],
        ..PLAIN
    },
    Call { heads: Some([2, 1]), sizes: [9, 5, 36, 20], dtypes: [BF16, F32, F32, F16], ..PLAIN },
    Call {
        heads: Some([8, 2]),
        sizes: [5, 80, 16, 16],
        causal: Some(At::Number(75)),
        window: Some(9),
        sinks: Some(&[8, 1, 1]),
        dtypes: [F16, F16, F16, F16],
        lies: [Packed, Within, TransposedWithin, Packed],
        ..PLAIN
    },
    Call { sizes: [3, 9, 256, 256], dtypes: HALVES, ..PLAIN },
    Call { sizes: [2, 4, 300, 4], ..PLAIN },
    Call { sizes: [1, 4, 4, 512], ..PLAIN },
    Call { heads: Some([4, 4]), sizes: [1, 40, 128, 128], dtypes: HALVES, ..PLAIN },
    // Small, for the mutants: several turns for keys and for values, scores far apart, and strides.
    Call { sizes: [2, 19, 32, 36], scale: Some(30.0), ..PLAIN },
    Call { sizes: [1, 20, 32, 32], lies: [Transposed; 4], ..PLAIN },
    Call { sizes: [1, 40, 16, 4], scale: Some(50.0), ..PLAIN },
    Call { sizes: [8, 3, 68, 4], ..PLAIN },
    Call { sizes: [2, 130, 4, 4], causal: Some(At::Number(127)), ..PLAIN },
    Call {
        heads: Some([2, 1]),
        sizes: [40, 150, 4, 4],
        causal: Some(At::Number(100)),
        window: Some(5),
        ..PLAIN
    },
    Call {
        sizes: [3, 5, 6, 7],
        dtypes: [F32, F32, F32, F16],
        lies: [Transposed; 4],
        mask: Some(&[3, 5]),
        ..PLAIN
    },
    Call { sizes: [1, 4, 512, 512], softcap: Some(1.5), scale: Some(9.0), ..PLAIN },
];

/// Keys in several parts, and values in several turns.
const PARTS: [Call; 11] = [
    Call { heads: Some([2, 1]), sizes: [1, 300, 4, 4], ..PLAIN },
    Call {
        lead: &[2],
        heads: Some([3, 1]),
        sizes: [1, 600, 4, 6],
        dtypes: [F32, F16, BF16, F16],
        lies: [Packed, Packed, Within, Within],
        lengths: Some(At::Tensor(&[2], &[0, 150])),
        sinks: Some(&[3, 1, 1]),
        ..PLAIN
    },
    Call {
        heads: Some([6, 2]),
        sizes: [4, 300, 3, 5],
        causal: Some(At::Tensor(&[1], &[250])),
        window: Some(200),
        mask: Some(&[300]),
        scale: Some(60.0),
        ..PLAIN
    },
    Call {
        sizes: [2, 400, 8, 18],
        lies: [Packed, Packed, Packed, Transposed],
        causal: Some(At::Number(340)),
        softcap: Some(3.0),
        ..PLAIN
    },
    Call { sizes: [7, 520, 4, 4], scale: Some(-60.0), sinks: Some(&[]), ..PLAIN },
    Call { sizes: [1, 40, 16, 36], ..PLAIN },
    Call { sizes: [8, 70, 36, 36], ..PLAIN },
    Call { sizes: [1, 40, 70, 4], ..PLAIN },
    Call { sizes: [1, 20, 132, 4], ..PLAIN },
    // More parts than are joined at once.
    Call { sizes: [1, 1100, 16, 256], ..PLAIN },
    Call { sizes: [4, 126, 36, 4], scale: Some(-60.0), ..PLAIN },
];

/// Calls that matrix units compute, if there are some.
const ON_UNITS: [Call; 16] = [
    Call { sizes: [33, 3, 60, 33], dtypes: HALVES, ..PLAIN },
    Call {
        sizes: [35, 70, 20, 36],
        dtypes: [F16, F16, F16, F32],
        lies: [Transposed, Within, TransposedWithin, Within],
        ..PLAIN
    },
    Call {
        heads: Some([2, 1]),
        sizes: [70, 140, 4, 6],
        dtypes: HALVES,
        causal: Some(At::Number(60)),
        ..PLAIN
    },
    Call {
        lead: &[2],
        heads: Some([4, 2]),
        sizes: [40, 90, 16, 16],
        dtypes: [F16, F16, F16, BF16],
        lies: [Packed, Within, Transposed, Transposed],
        causal: Some(At::Tensor(&[2], &[68, 3])),
        window: Some(9),
        ..PLAIN
    },
    Call {
        lead: &[3],
        sizes: [32, 70, 8, 5],
        dtypes: HALVES,
        lengths: Some(At::Tensor(&[3], &[0, 66, 4_000_000_000])),
        sinks: Some(&[]),
        ..PLAIN
    },
    Call {
        heads: Some([1, 1]),
        sizes: [33, 71, 4, 4],
        dtypes: [F16, F16, F16, F32],
        lies: [Transposed, TransposedWithin, Packed, Packed],
        softcap: Some(2.0),
        scale: Some(-3.0),
        mask: Some(&[33, 71]),
        ..PLAIN
    },
    Call { heads: Some([40, 1]), sizes: [1, 9, 8, 4], dtypes: HALVES, mask: Some(&[9]), ..PLAIN },
    Call { lead: &[11], sizes: [66, 3, 1, 1], dtypes: HALVES, ..PLAIN },
    Call {
        heads: Some([5, 1]),
        sizes: [8, 6, 4, 4],
        dtypes: [F16, F16, F16, F32],
        sinks: Some(&[5, 1, 1]),
        causal: Some(At::Number(0)),
        ..PLAIN
    },
    // Scores that rise from block to block, in one part and in several.
    Call { sizes: [33, 127, 16, 66], dtypes: HALVES, scale: Some(30.0), ..PLAIN },
    Call { lead: &[2], sizes: [32, 520, 4, 4], dtypes: HALVES, scale: Some(-60.0), ..PLAIN },
    // Scores that rise in the rows of one subgroup alone.
    Call { lead: &[4], sizes: [64, 126, 4, 4], dtypes: HALVES, scale: Some(-60.0), ..PLAIN },
    Call { sizes: [33, 65, 100, 4], dtypes: HALVES, ..PLAIN },
    Call {
        heads: Some([2, 1]),
        sizes: [17, 300, 4, 65],
        dtypes: [F16, F16, F16, F32],
        lies: [Packed, Packed, Packed, Within],
        causal: Some(At::Tensor(&[1], &[264])),
        window: Some(200),
        ..PLAIN
    },
    Call { sizes: [40, 66, 34, 124], dtypes: HALVES, ..PLAIN },
    Call {
        heads: Some([2, 2]),
        sizes: [65, 129, 128, 128],
        dtypes: HALVES,
        causal: Some(At::Number(64)),
        ..PLAIN
    },
];

pub(super) fn on_units() -> Vec<Case> {
    let mut rng = Rng::new(19);
    ON_UNITS.iter().map(|call| of(&mut rng, call, true)).collect()
}

pub(super) fn cases() -> Vec<Case> {
    let mut rng = Rng::new(17);
    let cases = CALLS.iter().map(|call| of(&mut rng, call, false));
    cases.collect()
}

pub(super) fn in_parts() -> Vec<Case> {
    let mut rng = Rng::new(18);
    PARTS.iter().map(|call| of(&mut rng, call, false)).collect()
}

fn of(rng: &mut Rng, call: &Call, on_units: bool) -> Case {
    let Call { lead, heads, sizes: [queries, keys, width, v_width], dtypes, lies, .. } = *call;
    let shape = |which: usize, rows: usize, width: usize| {
        let heads = heads.map(|heads| heads[which]);
        lead.iter().copied().chain(heads).chain([rows, width]).collect::<Vec<_>>()
    };
    let shapes = [shape(0, queries, width), shape(1, keys, width), shape(1, keys, v_width)];
    let mut given: Vec<_> = [2.0, 2.0, 1.0]
        .into_iter()
        .enumerate()
        .map(|(at, spread)| {
            Given::new(dtypes[at], lies[at], &shapes[at], numbers(rng, &shapes[at], spread))
        })
        .collect();
    if keys == 520 {
        // The largest score of each row lies in the second part, far above the others.
        given[0].values.iter_mut().for_each(|q| *q = q.abs());
        given[1].values[300 * width..][..width].fill(-4.0);
    }
    if keys == 126 {
        for (at, q) in given[0].values.iter_mut().enumerate() {
            let (unit, row) = (at / (queries * width), at / width % queries);
            *q = if row / 16 == unit { q.abs() } else { 0.0 };
        }
        let all = given[1].values.chunks_exact_mut(keys * width);
        all.for_each(|keys| keys[100 * width..][..width].fill(-4.0));
    }
    let scores = shape(0, queries, keys);
    let one_each = shape(0, queries, 1);
    let mask = call.mask.map(|shape| {
        let mut mask = numbers(rng, shape, 2.0);
        mask.iter_mut().skip(1).step_by(3).for_each(|mask| *mask = f64::NEG_INFINITY);
        // One row sees nothing, or all alike; one score is above all others.
        let last = shape.last().filter(|_| shape.len() > 1).copied().unwrap_or_default();
        let none = if shape.len() > 3 { f64::from(f32::MIN) } else { f64::NEG_INFINITY };
        mask.iter_mut().rev().take(last).for_each(|mask| *mask = none);
        if shape == [6, 1, 8] {
            mask[4 * 8 + 3] = f32::MAX.into();
        }
        Given::new(dtypes[3], lies[0], shape, mask)
    });
    // One is far above the scores, and three are special.
    let sinks = call.sinks.map(|shape| {
        let mut sinks = numbers(rng, shape, 2.0);
        let special = [f64::NEG_INFINITY, 40.0, f64::NAN, f64::INFINITY];
        sinks.iter_mut().skip(1).zip(special).for_each(|(sink, special)| *sink = special);
        Given::new(F16, TransposedWithin, shape, sinks)
    });
    let at = |at: Option<At>| match at {
        Some(At::Tensor(shape, numbers)) => {
            let numbers = numbers.iter().map(|&number| number as f64).collect();
            Some(Given::new(DType::U32, Packed, shape, numbers))
        }
        _ => None,
    };
    let position = at(call.causal).or_else(|| at(call.lengths));
    // Keys and values that no query sees may hold anything.
    for unit in 0..shapes[1].iter().rev().skip(2).product() {
        let all = seen(call, unit, 0).start..seen(call, unit, queries.max(1) - 1).end;
        for key in (0..keys).filter(|key| !all.contains(key)) {
            given[1].values[(unit * keys + key) * width..][..width].fill(f64::NAN);
            given[2].values[(unit * keys + key) * v_width..][..v_width].fill(f64::NAN);
        }
    }
    let wanted = reference(call, on_units, &given, [(&mask, &scores), (&sinks, &one_each)]);
    let has = [mask.is_some(), sinks.is_some(), position.is_some()];
    given.extend([mask, sinks, position].into_iter().flatten());
    let name = format!(
        "attention of {shapes:?} {dtypes:?} {lies:?}, mask {:?}, sinks {:?}, causal {}, \
         window {:?}",
        call.mask,
        call.sinks,
        call.causal.is_some(),
        call.window
    );
    let call = *call;
    Case {
        name,
        inputs: given,
        out: (dtypes[3], shape(0, queries, v_width), lies[3]),
        in_place: None,
        on_units,
        wanted,
        op: Box::new(move |given: &[Tensor]| {
            let mut op = ops::attention(&given[0], &given[1], &given[2]);
            let mut rest = given[3..].iter();
            let [mask, sinks, position] = has.map(|has| if has { rest.next() } else { None });
            let of = |at: At| match (at, position) {
                (At::Number(number), _) => ops::Position::from(number),
                (_, position) => position.unwrap().into(),
            };
            op = call.scale.into_iter().fold(op, |op, scale| op.scale(scale));
            op = call.softcap.into_iter().fold(op, |op, c| op.softcap(c));
            op = mask.into_iter().fold(op, |op, mask| op.mask(mask));
            op = sinks.into_iter().fold(op, |op, sinks| op.sinks(sinks));
            op = call.causal.into_iter().fold(op, |op, at| op.causal(of(at)));
            op = call.lengths.into_iter().fold(op, |op, at| op.lengths(of(at)));
            boxed(call.window.into_iter().fold(op, |op, window| op.window(window)))
        }),
    }
}

/// The keys that a query sees. A unit is a head of keys.
fn seen(call: &Call, unit: usize, query: usize) -> Range<usize> {
    let shared = call.heads.map_or(1, |[_, shared]| shared);
    let place = |at: At| match at {
        At::Number(number) => number,
        At::Tensor(_, [one]) => *one,
        At::Tensor(shape, all) => all[if shape.len() > 1 { unit } else { unit / shared }],
    };
    let keys = call.sizes[1];
    let next = call.causal.map(|at| place(at).saturating_add(query + 1));
    let end = next.or(call.lengths.map(place)).unwrap_or(keys).min(keys);
    let begin = next.zip(call.window).map_or(0, |(next, window)| next.saturating_sub(window));
    begin.min(end)..end
}

/// The results and their errors, as the operation's documentation gives the bound.
fn reference(
    call: &Call,
    on_units: bool,
    given: &[Given],
    [mask, sinks]: [(&Option<Given>, &Vec<usize>); 2],
) -> Vec<Wanted> {
    let [queries, keys, width, v_width] = call.sizes;
    let [of_mask, of_sinks] = [mask, sinks].map(|(other, shape)| {
        other.as_ref().map(|other| broadcast(&other.values, &other.shape, shape))
    });
    let [heads, shared] = call.heads.unwrap_or([1, 1]);
    let entries: usize = call.lead.iter().product();
    let scale = call.scale.map_or(1.0 / (width as f64).sqrt(), f64::from);
    let mut wanted = Vec::new();
    for row in 0..entries * heads * queries {
        let (entry, head, query) = (row / queries / heads, row / queries % heads, row % queries);
        let unit = entry * shared + head / (heads / shared);
        let q = &given[0].values[row * width..][..width];
        let score = |key: usize| {
            let k = &given[1].values[(unit * keys + key) * width..][..width];
            let products = || q.iter().zip(k).map(|(q, k)| q * k);
            let sum = scale * products().sum::<f64>();
            let size = scale.abs() * products().map(f64::abs).sum::<f64>();
            let chain = width as f64 / if on_units { 2.0 } else { 64.0 };
            let mut error = (chain + 8.0) * ULP * size;
            let mut s = sum;
            if let Some(c) = call.softcap.map(f64::from) {
                s = c * (s / c).tanh();
                error = error.min(2.0 * c) + 12.0 * ULP * c;
            }
            match of_mask.as_ref().map_or(0.0, |mask| mask[row * keys + key]) {
                // It swallows the score.
                mask if mask.is_finite() && mask.abs() > 1e37 => return (mask, 0.0),
                mask => s += mask,
            }
            let of_s = ULP * s.abs() * if on_units { 2.0 } else { 1.0 };
            (s, error + if s.is_finite() { of_s } else { 0.0 })
        };
        let scores: Vec<_> = seen(call, unit, query).map(|key| (key, score(key))).collect();
        let sink = of_sinks.as_ref().map(|sinks| sinks[row]);
        let all = || scores.iter().map(|(_, (s, _))| *s).chain(sink);
        if all().any(|s| s.is_nan() || s == f64::INFINITY) {
            wanted.extend(vec![(f64::NAN, 0.0); v_width]);
            continue;
        }
        let finite = || all().filter(|s| s.is_finite());
        let most = finite().fold(f64::NEG_INFINITY, f64::max);
        let least = finite().fold(f64::INFINITY, f64::min);
        let total: f64 = finite().map(|s| (s - most).exp()).sum();
        let delta = scores.iter().map(|(_, (_, error))| *error).fold(0.0, f64::max);
        let distance = (most - least).clamp(if on_units { 11.0 } else { 0.0 }, 104.0);
        let steps = 32.0 + 5.0 * distance + 2.0 * scores.len() as f64;
        // On matrix units weights are f16, and the smallest ones lose more.
        let [weight, least] =
            if on_units { [F16.unit_roundoff(), 2f64.powi(-36)] } else { [0.0; 2] };
        let relative = 2.0 * delta + steps * ULP + weight;
        for i in 0..v_width {
            let term = |(key, (s, _)): &(usize, (f64, f64))| {
                (s - most).exp() / total * given[2].values[(unit * keys + key) * v_width + i]
            };
            let terms = || scores.iter().filter(|(_, (s, _))| s.is_finite()).map(term);
            let size = terms().map(f64::abs).sum::<f64>();
            let values =
                scores.iter().map(|(key, _)| given[2].values[(unit * keys + key) * v_width + i]);
            let lost = least * values.map(f64::abs).sum::<f64>();
            wanted.push((terms().sum(), relative * size + lost + f64::from(f32::MIN_POSITIVE)));
        }
    }
    wanted
}
