//! Plans for small devices: with the least that APIs promise, and with less.

use crate::{few_buffers, plans};
use tilewise_core::kernel::Role;
use tilewise_core::plan::{Index, Quantize, Table, Take, prepare, quantize, take};
use tilewise_core::{Caps, DType, Error, Format, Grouping, Pass, Problem, Result, plan};
use tilewise_shaders::{CONVERSIONS, LIBRARY};
use tilewise_tests::cases::devices;
use tilewise_tests::conversions::{formats, made_on_devices};
use tilewise_tests::{minima, pieces};

/// Products of every form and format.
fn problems() -> Vec<(String, Problem)> {
    let met = plans::problems().into_iter().map(|(title, problem)| (title.to_owned(), problem));
    met.chain(few_buffers::problems()).collect()
}

/// The least that APIs promise. Then devices with and without matrix units, of which one limit or
/// all are lowered to Vulkan's minimum.
fn small() -> Vec<Caps> {
    let promised = [
        minima::vulkan(),
        Caps { f16: true, ..minima::vulkan() },
        minima::compatibility(),
        minima::downlevel(),
        Caps::webgpu_default(),
    ];
    let lowered = devices().into_iter().flat_map(|own| minima::lowered(&own, &minima::vulkan()));
    promised.into_iter().chain(lowered).collect()
}

/// A device with Vulkan's least, but with fewer invocations.
fn of_few(max_invocations: u32) -> Caps {
    Caps { max_invocations, ..minima::vulkan() }
}

/// Checks that passes keep to the limits. If there is no plan, returns the reason.
#[track_caller]
fn keeps_to(caps: &Caps, title: &str, passes: Result<Vec<Pass>>) -> Option<String> {
    match passes {
        Ok(passes) => pieces::fit(&passes, caps)
            .unwrap_or_else(|why| panic!("{title} on {}: {why}", caps.name)),
        Err(Error::DeviceLimit(words)) => return Some(words),
        Err(error) => panic!("{title} on {}: {error}", caps.name),
    }
    None
}

fn product(problem: &Problem, caps: &Caps) -> Result<Vec<Pass>> {
    plan(problem, caps, &LIBRARY, None).map(|plan| plan.passes)
}

#[test]
fn every_product_keeps_to_every_limit() {
    let problems = problems();
    for (at, caps) in small().iter().enumerate() {
        // The first device meets all problems, the others some. The step is a prime number, so each
        // form meets one.
        let (first, step) = if at == 0 { (0, 1) } else { (at, 11) };
        for (title, problem) in problems.iter().skip(first).step_by(step) {
            assert_eq!(keeps_to(caps, title, product(problem, caps)), None, "{title}: {caps:?}");
            if problem.grouping == Grouping::Batched {
                let Problem { n, k, batch, b, precision, .. } = *problem;
                let prepared = prepare(b, Role::B, [batch, n, k], precision, caps, &LIBRARY);
                let pass = prepared.map(|own| own.map(|own| own.pass).into_iter().collect());
                assert_eq!(keeps_to(caps, title, pass), None, "{title}: {caps:?}");
            }
        }
    }
}

/// With fewer invocations than any API permits, products are planned, or the error has the numbers.
#[test]
fn few_invocations_are_enough_or_too_few_in_words() {
    let mut planned = [0; 3];
    for (planned, most) in planned.iter_mut().zip([64, 32, 31]) {
        for (title, problem) in problems().into_iter().step_by(7) {
            let caps = of_few(most);
            match keeps_to(&caps, &title, product(&problem, &caps)) {
                None => *planned += 1,
                Some(why) => {
                    let words = format!("needed, {most} allowed");
                    assert!(why.contains("invocations: ") && why.contains(&words), "{why}");
                }
            }
        }
    }
    assert!(planned[0] > planned[1] && planned[1] > planned[2], "{planned:?}");
}

/// Takes from tables in every format, with rows and columns by index if there are enough storage
/// buffers; and quantizes weights.
#[test]
fn conversions_keep_to_every_limit() {
    let index = Some(Index { offset: 1, step: 2, count: 70_000, len: 140_001 });
    for caps in small().into_iter().chain([63, 32, 1].map(of_few)) {
        for format in formats() {
            let table = match format {
                Format::Dense(_) => Table::packed(format, 2, 300, 512),
                Format::Quantized(format) => Table::stored(format, 2, 300, 512),
            };
            let dtype = format.element().unwrap_or(DType::F16);
            for (rows, columns) in [(None, None), (index, None), (index, index)] {
                let (zeros, beside_c, len) = (false, false, u64::MAX);
                let asked = Take { table, rows, columns, zeros, dtype, offset: 3, len, beside_c };
                let bound = format.planes().len() as u64
                    + asked.columns.map_or(1, |_| 2)
                    + u64::from(rows.is_some());
                let why = keeps_to(&caps, &format.to_string(), take(&asked, &caps, &CONVERSIONS));
                let most = caps.max_storage_buffers;
                let expected = format!(
                    "take binds {bound} storage buffers, and the limit of the device is {most} "
                );
                match bound > most.into() {
                    true => assert!(why.is_some_and(|why| why.starts_with(&expected)), "{format}"),
                    false => assert_eq!(why, None, "{format}"),
                }
            }
        }
        for format in made_on_devices() {
            let weights = Table::packed(Format::Dense(DType::F32), 1, 300, 512);
            let asked = Quantize { weights, format, pitch: 512 };
            let passes = quantize(&asked, &caps, &CONVERSIONS);
            let why = keeps_to(&caps, &format.to_string(), passes);
            assert_eq!(
                why.is_some(),
                format.planes().len() + 2 > caps.max_storage_buffers as usize
            );
        }
    }
}
