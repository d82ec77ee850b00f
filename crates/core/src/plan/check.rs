//! Checks whether a product can be computed at all: everything that does not depend on the kernel.

use crate::error::{Error, Result};
use crate::kernel::Role;
use crate::problem::{DType, Dimension, Format, Gathered, Operand, Problem, Traits};
use crate::quant::QuantFormat;

/// Largest M, N, K or batch: tile arithmetic in u32 must not wrap.
pub(super) const MAX_DIMENSION: u64 = 1 << 31;

/// Checks everything about a product that depends neither on the kernel nor on the device. Gives
/// the problem with strides that play no part set to 0, so that nobody asks whether they are
/// aligned.
///
/// # Errors
/// [`Shape`](crate::Error), `Unsupported`, with the numbers.
pub fn check(problem: &Problem) -> Result<Problem> {
    let Problem { m, n, k, batch, .. } = *problem;
    for (name, size) in [
        ("M", m),
        ("N", n),
        ("K", k),
        ("the batch", batch),
        ("the number of groups", problem.entries()),
    ] {
        if size > MAX_DIMENSION {
            return Err(Error::Shape(format!(
                "overflow: {name} is {size}, at most {MAX_DIMENSION}"
            )));
        }
    }
    grouped(problem)?;
    nest(problem)?;
    paired(problem)?;
    let mut checked = *problem;
    if let Some(bias) = &mut checked.epilogue.bias {
        // One column: element i is at i·ld.
        bias.operand.transposed = false;
    }
    gathered(&mut checked)?;
    let whole = checked;
    for (role, operand, strides) in checked.operands() {
        storage(title(role), operand, span(&whole, role, operand, &strides))?;
        if role != Role::B {
            dense(title(role), operand)?;
        }
    }
    if problem.c.transposed {
        return Err(Error::Shape(
            "strides: C must run along N; compute the transpose instead, Cᵀ = Bᵀ·Aᵀ".into(),
        ));
    }
    if problem.epilogue.residual.is_some_and(|residual| residual.transposed) {
        return Err(Error::Shape("strides: the residual must run along N, as C does".into()));
    }
    if let Format::Quantized(format) = problem.b.format {
        quantized(&problem.b, [k, n], format)?;
    }
    // Nothing is summed if there are no rows to take, or if rows have no elements.
    if checked.gathered.is_some() && (checked.k == 0 || checked.stored_rows() == 0) {
        (checked.k, checked.gathered) = (0, None);
    }
    let normal = normal(&checked.collapsed());
    if !problem.grouping.traits().listed {
        no_overlap(&normal)?;
    }
    Ok(normal)
}

/// Checks a product in which each even column is the gate of the next one.
fn paired(problem: &Problem) -> Result<()> {
    let Problem { n, epilogue, .. } = problem;
    if epilogue.columns() == 1 {
        return Ok(());
    }
    if !n.is_multiple_of(2) {
        return Err(Error::Shape(format!("a gate and a column make a pair: N = {n} is odd")));
    }
    if epilogue.beta != 0.0 {
        let why = "beta beside columns in pairs, of which C holds one for two";
        return Err(Error::Unsupported(why.into()));
    }
    Ok(())
}

/// An operand's name in errors.
pub(super) fn title(role: Role) -> &'static str {
    match role {
        Role::A => "A",
        Role::B => "B",
        Role::C => "C",
        other => other.name(),
    }
}

fn dense(name: &str, operand: &Operand) -> Result<()> {
    match operand.format {
        Format::Dense(_) => Ok(()),
        Format::Quantized(format) => {
            Err(Error::Unsupported(format!("{name} is {format}; only B may be quantized")))
        }
    }
}

/// The type of an operand that [`check`] has found dense.
pub(super) fn dense_type(operand: &Operand) -> DType {
    operand.format.element().unwrap_or(DType::F32)
}

/// Elements from the start of the storage to the end of the operand; none if their bits pass 2^64.
pub(super) fn span(
    problem: &Problem,
    role: Role,
    operand: &Operand,
    strides: &[(Dimension, u64); 3],
) -> Option<u64> {
    let mut last = operand.offset;
    if problem.grouping.traits().listed {
        return last.checked_add(operand.batch_stride);
    }
    if let (Role::A, Some(Gathered { rows, .. })) = (role, problem.gathered) {
        let Some(steps) = rows.checked_sub(1) else { return Some(0) };
        last = last.checked_add(operand.ld.checked_mul(steps)?)?;
    }
    let [outer, middle, inner] = operand.outer_strides;
    for &(dimension, stride) in strides {
        let extent = problem.part_for(role, dimension, problem.extent(dimension));
        let levels = match dimension {
            Dimension::Entries => problem.grouping.levels(extent, [outer, middle, inner, stride]),
            _ => [(1, 0), (1, 0), (1, 0), (extent, stride)],
        };
        for (extent, stride) in levels {
            let Some(steps) = extent.checked_sub(1) else { return Some(0) };
            last = last.checked_add(stride.checked_mul(steps)?)?;
        }
    }
    last.checked_add(1).filter(|span| span.checked_mul(u64::BITS.into()).is_some())
}

fn storage(name: &'static str, operand: &Operand, span: Option<u64>) -> Result<()> {
    if operand.format.element().is_some_and(|dtype| !dtype.is_float()) {
        return Err(Error::Unsupported(format!(
            "{name} is {}; products take f32, f16 and bf16",
            operand.format
        )));
    }
    let needed = span.ok_or_else(|| {
        Error::Shape(format!("overflow: {name} with these strides passes 2^58 elements"))
    })?;
    if needed > operand.len {
        return Err(Error::buffer_too_small(name, needed, operand.len));
    }
    Ok(())
}

/// The problem with strides that play no part set to 0. A vector whose elements follow each other
/// runs along K, whichever way its matrix is written.
pub(super) fn normal(problem: &Problem) -> Problem {
    let mut normal = *problem;
    if problem.grouping.traits().listed {
        for operand in [&mut normal.a, &mut normal.b] {
            operand.ld = operand.ld.max(1);
        }
        return normal;
    }
    if problem.m == 1 && problem.a.ld == 1 {
        normal.a.transposed = false;
    }
    if problem.n == 1 && problem.b.ld == 1 {
        normal.b.transposed = true;
    }
    for (role, operand, [(_, entry), (rows, _), (cols, _)]) in normal.operands() {
        let lines = match role {
            Role::A if problem.gathered.is_some() => problem.stored_rows(),
            _ => problem.extent(if operand.transposed { cols } else { rows }),
        };
        if lines <= 1 {
            operand.ld = 0;
        }
        if problem.grouping.nest().is_none() {
            let entry = if problem.entries() > 1 { entry } else { 0 };
            *operand = operand.with_entry_strides([0, 0, 0, entry]);
        }
    }
    normal
}

/// Checks rows by index: they are contiguous, of one matrix for all entries, and their indices lie
/// in their storage. No copy that was packed beforehand serves them.
fn gathered(problem: &mut Problem) -> Result<()> {
    let Problem { k, a, gathered: Some(Gathered { rows, len, .. }), .. } = *problem else {
        return Ok(());
    };
    problem.copies[0] = None;
    if rows > MAX_DIMENSION {
        return Err(Error::Shape(format!(
            "overflow: A gathers rows from a matrix of {rows} rows, at most {MAX_DIMENSION} are \
             possible"
        )));
    }
    if a.transposed && (k <= 1 || rows == 0) {
        // A column's elements are rows, one after the other; otherwise there is no element at all.
        (problem.a.transposed, problem.a.ld) = (false, k.max(1));
    } else if a.transposed {
        return Err(Error::Shape(
            "strides: rows by index must be contiguous; those of A here have gaps between their \
             elements"
                .into(),
        ));
    }
    if problem.entries() > 1 && !problem.grouping.traits().shares_rows && !a.is_shared() {
        return Err(Error::Shape(format!(
            "strides: rows by index come from one matrix; the strides of A's entries are {:?}",
            a.entry_strides()
        )));
    }
    match problem.indices().unwrap_or(0) {
        needed if needed > MAX_DIMENSION => {
            Err(Error::Shape(format!("overflow: there are more than {MAX_DIMENSION} row indices")))
        }
        needed if needed > len && problem.m > 0 => {
            Err(Error::buffer_too_small("row indices", needed, len))
        }
        _ => Ok(()),
    }
}

/// Checks that the dimensions of a nested batch make its entries, and that no other batch has
/// strides along them.
fn nest(problem: &Problem) -> Result<()> {
    let Some(sizes) = problem.grouping.nest() else { return Ok(()) };
    let product = sizes.iter().try_fold(1u64, |product, &size| product.checked_mul(size));
    if product == Some(problem.batch) {
        return Ok(());
    }
    Err(Error::Shape(format!("a batch of {} entries has dimensions {sizes:?}", problem.batch)))
}

/// Checks that the batch is the one that the grouping is made for. If entries are ranges of K, they
/// share one A and one B, whose elements are taken one by one. Products of a list take no operand
/// that has the shape of one of them.
fn grouped(problem: &Problem) -> Result<()> {
    let Problem { m, batch, grouping, a, b, epilogue, gathered, .. } = problem;
    let Traits { shares_rows, indexed, numbers, whole_k, listed, .. } = grouping.traits();
    match grouping.batch() {
        Some(1) if *batch != 1 && shares_rows => {
            return Err(Error::Shape(format!(
                "a grouped product has no batch, this one has {batch}"
            )));
        }
        Some(entries) if entries != *batch => {
            return Err(Error::Shape(format!("{entries} groups make a batch of {batch} entries")));
        }
        _ => {}
    }
    let groups = problem.entries();
    if indexed && (numbers < *m || groups == 0 && *m > 0) {
        return Err(Error::Shape(format!(
            "{m} rows have {numbers} indices, into {groups} entries of B"
        )));
    }
    if whole_k {
        return Ok(());
    }
    for (name, given) in [
        ("row indices", gathered.is_some()),
        ("a bias", epilogue.bias.is_some()),
        ("a residual", epilogue.residual.is_some()),
        ("columns in pairs", epilogue.columns() > 1),
    ] {
        if listed && given {
            return Err(Error::Unsupported(format!(
                "{name} beside products of a list, which have a shape each"
            )));
        }
    }
    for (name, operand) in [("A", a), ("B", b)] {
        if !listed && !operand.is_shared() {
            return Err(Error::Shape(format!(
                "strides: groups along K share one {name}; the strides of its entries are {:?}",
                operand.entry_strides()
            )));
        }
    }
    let whose = if listed { "products of a list" } else { "groups along K" };
    match b.format {
        Format::Dense(_) => Ok(()),
        Format::Quantized(format) => Err(Error::Unsupported(format!(
            "B in {format}: {whose} begin anywhere, also inside its blocks of {}",
            format.block()
        ))),
    }
}

/// Checks that B lies in whole blocks along its rows: along K if it is stored [N,K], otherwise
/// along N.
fn quantized(b: &Operand, [k, n]: [u64; 2], format: QuantFormat) -> Result<()> {
    let block = format.block();
    let (axis, length) = if b.transposed { ("K", k) } else { ("N", n) };
    if !length.is_multiple_of(block) {
        return Err(Error::Shape(format!(
            "{axis} = {length} is not a multiple of {block}, the block of {format}"
        )));
    }
    let [first, second, third, last] = b.entry_strides();
    for (name, value) in [
        ("offset", b.offset),
        ("row stride", b.ld),
        ("batch stride", last),
        ("batch stride", third),
        ("batch stride", second),
        ("batch stride", first),
    ] {
        if !value.is_multiple_of(block) {
            return Err(Error::Shape(format!(
                "misaligned: the {name} of a quantized B is {value}, not a multiple of {block}, \
                 the block of {format}"
            )));
        }
    }
    Ok(())
}

/// Checks that no two elements of C share a place. Along each dimension, shortest stride first,
/// neighbours lie behind all that the dimensions before it reach.
fn no_overlap(problem: &Problem) -> Result<()> {
    let Problem { m, c, .. } = *problem;
    let n = problem.part_for(Role::C, Dimension::N, problem.n);
    let entries = problem.grouping.levels(problem.batch, c.entry_strides());
    let [first, second, third, last] = entries;
    // A product that is recorded again and again allocates nothing here.
    let mut all = [first, second, third, last, (m, c.ld), (n, 1)];
    if all.iter().any(|(size, _)| *size == 0) {
        return Ok(());
    }
    all.sort_unstable_by_key(|(_, stride)| *stride);
    let mut end = 1u64;
    for (size, stride) in all.into_iter().filter(|(size, _)| *size > 1) {
        if stride < end {
            let entries = entries.iter().filter(|(size, _)| *size > 1);
            let entries = entries.map(|(size, stride)| format!("{size} entries {stride} apart, "));
            return Err(Error::Shape(format!(
                "strides: elements of C overlap: {}{m} rows {} apart, {n} columns",
                entries.collect::<String>(),
                c.ld
            )));
        }
        end = end.saturating_add((size - 1).saturating_mul(stride));
    }
    Ok(())
}
