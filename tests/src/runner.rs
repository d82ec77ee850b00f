//! Runs a case and checks the whole output buffer.

#[cfg(not(target_family = "wasm"))]
pub mod suite;
mod weights;

use crate::case::{Form, Groups, Indices};
use crate::generators::poison;
use crate::{Case, Count, Entries, Place, Rng};
use std::ops::Range;
use tilewise::{
    Axis, Context, DType, Gemm, GroupEnds, Prepared, ProductList, Quantized, QuantizedTensor,
    RightOperand, Shards, Tensor,
};
use tilewise_core::plan::{Forced, plan};
use tilewise_core::problem::{LISTED, ListSizes};
use tilewise_core::{
    Bias, Caps, Epilogue, Format, Gathered, Grouping, Operand, Problem, convert, quant,
};
use tilewise_oracle::{Inputs, Reference, reference};
use weights::{stored_shape, weight_error, weights, weights_shape};

/// The outcome of a case.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The output's buffer after the product, with its guard bands.
    pub bytes: Vec<u8>,
    /// The elements of C, row-major over entries, rows and columns.
    pub c: Vec<f32>,
    /// The bound of each element.
    pub bound: Vec<f64>,
    /// Largest error as a fraction of its bound.
    pub worst: f64,
}

/// An operand on the host: its layout, its buffer's bytes, and their numbers.
pub(crate) struct Stored {
    pub(crate) operand: Operand,
    pub(crate) bytes: Vec<u8>,
}

impl Stored {
    /// A buffer of poison.
    fn poisoned(place: &Place, count: Count, shape: [usize; 2]) -> Self {
        let operand = place.operand(count, shape);
        Stored { operand, bytes: poison(place.dtype, operand.len as usize) }
    }

    /// A buffer of poison, with these elements in it.
    fn filled(place: &Place, count: Count, shape: [usize; 2], values: &[f32]) -> Self {
        let mut stored = Self::poisoned(place, count, shape);
        let encoded = convert::encode(place.dtype, values);
        let size = place.dtype.bytes() as usize;
        // An entry that serves all is filled once.
        let mut firsts = count.firsts(&stored.operand);
        firsts.sort_unstable();
        firsts.dedup();
        for (value, at) in encoded.chunks_exact(size).zip(places(&stored.operand, firsts, shape)) {
            stored.bytes[at * size..(at + 1) * size].copy_from_slice(value);
        }
        stored
    }

    fn dtype(&self) -> DType {
        self.operand.format.element().expect("quantized weights are kept apart")
    }

    fn values(&self) -> Vec<f64> {
        convert::decode_f64(self.dtype(), &self.bytes).expect("whole elements")
    }

    fn upload(&self, context: &Context) -> tilewise::Result<Tensor> {
        Tensor::from_bytes(context, self.dtype(), &self.bytes, &[self.operand.len as usize])
    }
}

/// Storage indices of the elements, row-major over entries, rows and columns. `firsts` are the
/// places at which entries begin.
fn places(
    operand: &Operand,
    firsts: Vec<usize>,
    [rows, cols]: [usize; 2],
) -> impl Iterator<Item = usize> {
    let Operand { transposed, ld, .. } = *operand;
    let ld = ld as usize;
    firsts.into_iter().flat_map(move |first| {
        (0..rows).flat_map(move |row| {
            (0..cols)
                .map(move |col| first + if transposed { col * ld + row } else { row * ld + col })
        })
    })
}

/// A case with the contents of its operands, and the results that it must have.
pub struct Filled {
    /// The case.
    pub case: Case,
    /// The case in numbers.
    pub problem: Problem,
    pub(crate) a: Stored,
    pub(crate) b: Stored,
    pub(crate) old: Stored,
    pub(crate) bias: Option<Stored>,
    pub(crate) residual: Option<Stored>,
    pub(crate) weights: Option<Vec<Quantized>>,
    /// The oracle's answer.
    pub expected: Reference,
}

impl Filled {
    /// Fills the operands, and asks the oracle for the results on a device with these caps.
    ///
    /// # Errors
    /// The weights cannot be quantized as the case says.
    pub fn new(case: &Case, caps: &Caps) -> Result<Self, String> {
        let [m, n, _] = case.size;
        let (batch, entries) = (case.count(), case.entries());
        let mut rng = Rng::new(case.seed);
        let mut fill = |data: &crate::Data, place: &Place, entries: Count, shape: [usize; 2]| {
            let values = data.generate(place.dtype, place.stored(entries), shape, &mut rng);
            Stored::filled(place, entries, shape, &values)
        };
        let [a_shape, b_shape, c_shape] = case.shapes();
        let flat = |place: &Place| match case.form {
            Form::Listed(_) => place.transposed(false),
            _ => *place,
        };
        let (_, matrices) = case.left();
        let a = fill(&case.a_data, &flat(&case.a), matrices, a_shape);
        let b = fill(&case.b_data, &flat(&case.b), entries, b_shape);
        let old = match case.beta {
            0.0 => Stored::poisoned(&case.c, batch, c_shape),
            _ => fill(&case.a_data, &case.c, batch, c_shape),
        };
        let bias_length = |axis| if axis == Axis::M { m } else { n };
        let bias = case
            .bias
            .map(|(axis, place)| fill(&case.a_data, &place, entries, [bias_length(axis), 1]));
        let residual = case.residual.map(|place| fill(&case.a_data, &place, batch, [m, n]));
        let weights = case.quantized.map(|format| weights(case, format, &mut rng)).transpose()?;
        let problem = problem(case);

        let (b_values, b_error) = match &weights {
            None => (b.values(), None),
            Some(all) => (
                all.iter().flat_map(|w| quant::dequantize(w).into_iter().map(f64::from)).collect(),
                Some(all.iter().flat_map(|w| weight_error(case, caps, w)).collect::<Vec<_>>()),
            ),
        };
        let [bias_values, residual_values] =
            [&bias, &residual].map(|stored| stored.as_ref().map(Stored::values));
        let inputs = Inputs {
            a: &a.values(),
            indices: &case.gathered.as_ref().map_or(Vec::new(), Indices::words),
            b: &b_values,
            b_error: b_error.as_deref(),
            c: &old.values(),
            bias: bias_values.as_deref(),
            residual: residual_values.as_deref(),
            offsets: case.groups.as_ref().map_or(&[], |groups| &groups.ends),
        };
        let expected = reference(&problem, &inputs);
        Ok(Filled { case: case.clone(), problem, a, b, old, bias, residual, weights, expected })
    }

    /// Compares the contents of C's buffer with the oracle's. Elements of C must be within their
    /// bounds, and all other bits must be unchanged.
    ///
    /// # Errors
    /// The fault, in words.
    pub fn judge(&self, bytes: Vec<u8>) -> Result<Outcome, String> {
        let Filled { case, problem, expected, .. } = self;
        let old = &self.old.bytes;
        let [.., [m, n]] = case.shapes();
        let dtype = case.c.dtype;
        let size = dtype.bytes() as usize;
        let at: Vec<_> = places(&problem.c, case.count().firsts(&problem.c), [m, n]).collect();
        let name = |index: usize| match at.iter().position(|&place| place == index) {
            Some(i) => format!(
                "element {index} (entry {}, row {}, column {})",
                i / (m * n),
                i / n % m,
                i % n
            ),
            None => format!("element {index} (outside C)"),
        };
        if bytes.len() != old.len() {
            return Err(format!("{} bytes came back of {}", bytes.len(), old.len()));
        }
        for (index, (new, old)) in bytes.chunks_exact(size).zip(old.chunks_exact(size)).enumerate()
        {
            if !expected.written[index] && new != old {
                return Err(format!("{} must stay {old:x?} and is {new:x?}", name(index)));
            }
        }
        let computed = convert::decode_f64(dtype, &bytes).map_err(|error| error.to_string())?;
        if case.exact {
            for (index, (&got, &wanted)) in computed
                .iter()
                .zip(&expected.value)
                .enumerate()
                .filter(|(i, _)| expected.written[*i])
            {
                let representable = convert::round_f64(dtype, wanted);
                assert_eq!(
                    representable, wanted,
                    "a case for exact results must have representable ones: {case:?}"
                );
                if got != wanted {
                    return Err(format!("{} is {got}, expected exactly {wanted}", name(index)));
                }
            }
        }
        let worst = expected
            .check(&computed, dtype)
            .map_err(|wrong| format!("{}: {wrong}", name(wrong.index)))?;
        let c = at.iter().map(|&i| computed[i] as f32).collect();
        let bound = at.iter().map(|&i| expected.bound[i]).collect();
        Ok(Outcome { bytes, c, bound, worst })
    }
}

/// Runs `case` and compares the output buffer with the oracle's. Elements of C must be within their
/// bounds, and all other bits must be unchanged.
///
/// # Errors
/// The fault, in words.
pub async fn outcome(context: &Context, case: &Case) -> Result<Outcome, String> {
    let filled = Filled::new(case, context.caps())?;
    let Filled { a, b, old, bias, residual, weights, .. } = &filled;
    let addends = [bias.as_ref(), residual.as_ref()];
    let bytes = execute(context, case, [a, b, old], addends, weights.as_deref()).await;
    filled.judge(bytes.map_err(|error| format!("refused: {error}"))?)
}

/// The problem of a case.
pub(crate) fn problem(case: &Case) -> Problem {
    let [m, n, k] = case.size;
    let (count, entries) = (case.count(), case.entries());
    let b = match case.quantized {
        None => case.b.operand(entries, [k, n]),
        Some(format) => {
            let stored = case.right().stored(entries) as u64;
            let [rows, columns] = stored_shape(case, format).map(|size| size as u64);
            let offset = case.margin() as u64 * (columns + format.block());
            let operand = Operand {
                offset,
                ..Operand::packed(Format::Quantized(format), stored, rows, columns)
            };
            let operand = if case.across { operand } else { operand.t() };
            let [.., each] = entries.0;
            let own = operand.batch_stride as usize;
            operand.with_entry_strides(entries.strides(match case.right().entries {
                _ if stored == 1 => [0; 4],
                Entries::SharedInner => [0, 0, own, 0],
                _ => [0, 0, own * each, own],
            }))
        }
    };
    let bias = case.bias.map(|(axis, place)| {
        let length = if axis == Axis::M { m } else { n };
        Bias { axis, operand: place.operand(entries, [length, 1]) }
    });
    let (rows, matrices) = case.left();
    let gathered = case.gathered.as_ref().map(|indices| Gathered {
        rows: rows as u64,
        offset: Indices::LEAD as u64,
        step: indices.step as u64,
        len: indices.words().len() as u64,
    });
    let problem = Problem {
        m: m as u64,
        n: n as u64,
        k: k as u64,
        batch: count.entries() as u64,
        a: match gathered {
            Some(_) => case.a.operand(1, [rows, k]).with_entry_strides([0; 4]),
            None => case.a.operand(matrices, [rows, k]),
        },
        gathered,
        b,
        c: case.c.operand(count, [m, n / case.columns()]),
        grouping: match &case.groups {
            None => count.grouping(),
            Some(groups) => {
                let (groups, offset) = (groups.ends.len() as u64, 0);
                match case.form {
                    Form::Rows | Form::Columns => {
                        Grouping::RaggedM { groups, first: 0, offset, expected: None }
                    }
                    Form::Indexed(entries) => {
                        Grouping::Indexed { groups: entries as u64, rows: groups, offset }
                    }
                    Form::Masked => {
                        let expected = case.expected_rows.map(|rows| rows as u64);
                        Grouping::Masked { entries: groups, offset, expected }
                    }
                    Form::AlongK => Grouping::RaggedK { groups, offset },
                    Form::Listed(_) => Grouping::Listed { groups, offset, sizes: None },
                }
            }
        },
        epilogue: Epilogue {
            alpha: case.alpha,
            beta: case.beta,
            bias,
            activation: case.activation,
            residual: case.residual.map(|place| place.operand(count, [m, n])),
            gated: case.gated,
        },
        precision: case.precision,
        copies: [None; 2],
        beside_c: false,
    };
    let (Form::Listed(elements), Some(numbers)) = (case.form, &case.groups) else { return problem };
    let flat = |place: &Place, own: usize| Operand {
        transposed: place.transposed,
        ld: if case.aligned { 16 / place.dtype.bytes() } else { 1 },
        batch_stride: elements[own] as u64,
        ..place.transposed(false).operand(1, [1, elements[own]])
    };
    let groups = numbers.products().count() as u64;
    let sizes = || ListSizes::of(numbers.products().map(|numbers| [numbers[0], numbers[1]]));
    Problem {
        batch: groups,
        a: flat(&case.a, 0),
        b: flat(&case.b, 1),
        c: flat(&case.c, 2),
        grouping: Grouping::Listed { groups, offset: 0, sizes: (!numbers.on_device).then(sizes) },
        ..problem
    }
}

/// The entries of B in each shard.
pub(crate) fn ranges(shards: &[usize]) -> impl Iterator<Item = Range<usize>> {
    shards.iter().scan(0, |end, count| {
        let first = *end;
        *end += count;
        Some(first..*end)
    })
}

/// Runs the case and returns the whole buffer of C.
async fn execute(
    context: &Context,
    case: &Case,
    [a, b, c]: [&Stored; 3],
    [bias, residual]: [Option<&Stored>; 2],
    weights: Option<&[Quantized]>,
) -> tilewise::Result<Vec<u8>> {
    let [m, n, k] = case.size;
    let c_flat = c.upload(context)?;
    let batch = case.batch.map(|_| case.count());
    let [a_shape, b_shape, c_shape] = case.shapes();
    let listed = matches!(case.form, Form::Listed(_));
    // The storage of operands of a list is one row.
    let place = |place: &Place| if listed { place.transposed(false) } else { *place };
    let c_view = place(&case.c).view(&c_flat, batch, c_shape)?;
    let (_, matrices) = case.left();
    let matrices = batch.filter(|_| case.gathered.is_none()).map(|_| matrices);
    let a_view = place(&case.a).view(&a.upload(context)?, matrices, a_shape)?;
    let b_batch = batch.or(case.groups.as_ref().map(|_| case.entries())).filter(|_| !listed);
    let right_bytes = b;
    let b_view = place(&case.b).view(&b.upload(context)?, b_batch, b_shape)?;
    let inside = |weights: QuantizedTensor| {
        let ([rows, columns], margin) = (weights_shape(case), case.margin());
        let first = margin * weights.format().block() as usize;
        let inside = weights.slice(margin..margin + rows, first..first + columns)?;
        Ok::<_, tilewise::Error>(if case.across { inside.t() } else { inside })
    };
    let uploaded =
        |weights: &[Quantized]| QuantizedTensor::upload_groups(context, weights).and_then(&inside);
    let stored = weights;
    let weights = weights.map(uploaded).transpose()?;
    let bias = match (case.bias, bias) {
        (Some((axis, place)), Some(stored)) => Some((
            vector(context, case, &place, stored, if axis == Axis::M { m } else { n })?,
            axis,
        )),
        _ => None,
    };
    let residual = match (case.residual, residual) {
        (Some(place), Some(stored)) => Some(place.view(&stored.upload(context)?, batch, [m, n])?),
        _ => None,
    };
    let numbers = case.groups.as_ref().map(|groups| groups.upload(context)).transpose()?;
    let offsets = |numbers: &Tensor| match &case.groups {
        Some(Groups { ends, on_device: false }) => GroupEnds::upload(context, ends),
        _ => GroupEnds::from_tensor(numbers),
    };

    let prepared = match case.prepared {
        true => Some((
            Prepared::left_for(&a_view, case.precision)?,
            Prepared::right_for(&b_view, case.precision)?,
            weights.as_ref().map(Prepared::quantized).transpose()?,
        )),
        false => None,
    };
    let (left, b, weights) = match &prepared {
        Some((a, b, weights)) => (&**a, &**b, weights.as_deref()),
        None => (&a_view, &b_view, weights.as_ref()),
    };
    let shard = |groups: Range<usize>| -> tilewise::Result<RightOperand> {
        Ok(match stored {
            Some(weights) => uploaded(&weights[groups])?.into(),
            None => {
                let own = case.b.view(&right_bytes.upload(context)?, b_batch, [k, n])?;
                own.narrow(0, groups.start, groups.len())?.into()
            }
        })
    };
    let right = match &case.shards[..] {
        [] => weights.map_or_else(|| RightOperand::from(b), RightOperand::from),
        shards => {
            Shards::new(ranges(shards).map(shard).collect::<tilewise::Result<Vec<_>>>()?)?.into()
        }
    };
    let columns = case.form == Form::Columns;
    let turned = |tensor: &Tensor| if columns { tensor.t() } else { tensor.clone() };
    let mut gemm = match (&numbers, case.form) {
        (None, _) => Gemm::new(left, right),
        (Some(ends), Form::Rows) => Gemm::grouped(left, right, &offsets(ends)?),
        // The weights are stored [groups,M,K].
        (Some(ends), Form::Columns) => {
            Gemm::ragged_n(RightOperand::of_weights(right), &left.t(), &offsets(ends)?)
        }
        (Some(indices), Form::Indexed(_)) => Gemm::indexed(left, right, indices),
        (Some(counts), Form::Masked) => Gemm::masked(left, right, counts),
        (Some(ends), Form::AlongK) => Gemm::ragged_k(left, b, &offsets(ends)?),
        (Some(numbers), Form::Listed(_)) => {
            let shape = [numbers.elem_count() / LISTED as usize, LISTED as usize];
            let list = match &case.groups {
                Some(own) if !own.on_device => ProductList::upload(context, &own.shapes())?,
                _ => ProductList::from_tensor(&numbers.reshape(&shape)?, [m, n, k])?,
            };
            let list = if case.aligned { list.aligned() } else { list };
            Gemm::list(left, b, &list.transposed(case.a.transposed, case.b.transposed))
        }
    };
    gemm = match case.written {
        true => {
            let both = Tensor::upload(context, &[f32::NAN, case.alpha, case.beta], &[3])?;
            gemm.alpha_tensor(&both.narrow(0, 1, 1)?).beta_tensor(&both.narrow(0, 2, 1)?)
        }
        false => gemm.alpha(case.alpha).beta(case.beta),
    };
    if let Some(rows) = case.expected_rows {
        gemm = gemm.expect_rows(rows);
    }
    if let Some(indices) = &case.gathered {
        let words = indices.words();
        let words = Tensor::upload(context, &words, &[words.len()])?;
        gemm = gemm.gather_rows(&words.as_strided(&[m], &[indices.step], Indices::LEAD)?);
    }
    gemm = if case.gated { gemm } else { gemm.activation(case.activation) };
    gemm = gemm.precision(case.precision);
    if let Some((bias, axis)) = &bias {
        let across = if *axis == Axis::M { Axis::N } else { Axis::M };
        gemm = gemm.bias_along(bias, if columns { across } else { *axis });
    }
    gemm = match (residual.as_ref().map(turned), case.gated) {
        (Some(residual), true) => gemm.gated_by(&residual, case.activation),
        (Some(residual), false) => gemm.residual(&residual),
        (None, true) => gemm.glu(case.activation),
        (None, false) => gemm,
    };
    if let Some(kernel) = &case.kernel {
        let name = possible(&gemm, kernel, context)?;
        gemm = gemm.kernel(name);
    }
    gemm.run_into(&turned(&c_view))?;
    c_flat.read_bytes().await
}

/// A kernel's name, with no more splits of K than the product has: cases of all sizes share a name.
fn possible(gemm: &Gemm, name: &str, context: &Context) -> tilewise::Result<String> {
    let forced: Forced = name.parse()?;
    if context.is_cpu() || forced.splits.is_none() {
        return Ok(name.to_owned());
    }
    let problem = gemm.problems()?.swap_remove(0);
    let plan = plan(&problem, context.caps(), context.library(), Some(&forced))?;
    let splits = plan.choice.map(|choice| choice.splits);
    Ok(Forced { splits: splits.or(forced.splits), ..forced }.to_string())
}

/// A bias: \[length\], or \[entries, length\] in a batch or with groups.
fn vector(
    context: &Context,
    case: &Case,
    place: &Place,
    stored: &Stored,
    length: usize,
) -> tilewise::Result<Tensor> {
    let entries = Some(case.entries()).filter(|entries| place.stored(*entries) != 1);
    let columns = place.view(&stored.upload(context)?, entries, [length, 1])?;
    columns.squeeze(columns.shape().len() - 1)
}
