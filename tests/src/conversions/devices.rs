//! Runs cases through the library's calls.

use super::{Memory, Quantizing, Source, Taking, places, same_numbers};
use crate::{Rng, generators};
use std::error::Error;
use tilewise::Error::Misuse;
use tilewise::{Context, Quantized, QuantizedTensor, RightOperand, Take, Tensor};
use tilewise_core::{Format, convert};
use tilewise_oracle::rounded_error;

/// A source on a device.
enum Uploaded {
    Dense(Tensor),
    Quantized(QuantizedTensor),
}

impl Uploaded {
    fn new(context: &Context, source: &Source, stored: &Memory) -> tilewise::Result<Self> {
        let [entries, lines, width] = source.storage();
        let margin = source.margin;
        match source.format {
            Format::Dense(dtype) => {
                let shape = [entries, lines, width];
                let all = Tensor::from_bytes(context, dtype, &stored.planes[0], &shape)?;
                let inside =
                    all.slice(&[0..entries, margin..lines - margin, margin..width - margin])?;
                Ok(Uploaded::Dense(if source.transposed { inside.t() } else { inside }))
            }
            Format::Quantized(format) => {
                let columns = margin * format.block() as usize;
                let all = QuantizedTensor::upload_groups(context, &stored.quantized)?;
                let inside = all.slice(margin..lines - margin, columns..width - columns)?;
                Ok(Uploaded::Quantized(inside))
            }
        }
    }

    fn right(&self) -> RightOperand {
        match self {
            Uploaded::Dense(tensor) => tensor.into(),
            Uploaded::Quantized(weights) => weights.into(),
        }
    }
}

/// Takes through the library's calls, into a view between poison.
///
/// # Errors
/// The first thing that was wrong, in words.
pub async fn take(context: &Context, case: &Taking) -> Result<(), Box<dyn Error>> {
    let stored = case.table.store(&mut Rng::new(7));
    let table = Uploaded::new(context, &case.table, &stored)?;
    let index = |indices: &Option<Vec<u32>>| {
        let words: Vec<u32> = [u32::MAX].into_iter().chain(indices.clone()?).collect();
        let all = Tensor::upload(context, &words, &[words.len()]);
        Some(all.and_then(|all| all.slice(std::slice::from_ref(&(1..words.len())))))
    };
    let [rows, columns] = [index(&case.indices[0]), index(&case.indices[1])];
    let mut take = Take::new(table.right()).out_dtype(case.dtype);
    if let Some(rows) = rows {
        take = take.rows(&rows?);
    }
    if let Some(columns) = columns {
        take = take.columns(&columns?);
    }
    let shape = case.shape().to_vec();
    let elements: usize = shape.iter().product();
    let poison = generators::poison(case.dtype, case.lead + elements);
    let all = Tensor::from_bytes(context, case.dtype, &poison, &[case.lead + elements])?;
    let inside = case.lead..case.lead + elements;
    take.run_into(&all.slice(std::slice::from_ref(&inside))?.reshape(&shape)?)?;

    let bytes = all.read_bytes().await?;
    let (before, after) = bytes.split_at(case.lead * case.dtype.bytes() as usize);
    if before != &poison[..before.len()] {
        return Err("something was written before the output".into());
    }
    let values = case.expected(&stored.values, case.beyond());
    let wanted = convert::encode(case.dtype, &values);
    // An affine format adds a bias. A device may fuse that sum with the product before it.
    let same = match case.table.format {
        Format::Quantized(format) if format.def().family == "affine" && !context.is_cpu() => {
            let errors = |weights: &Quantized| rounded_error(weights, &[case.dtype]);
            let errors: Vec<f64> = stored.quantized.iter().flat_map(errors).collect();
            let errors: Vec<f64> = places(&stored.table).map(|at| errors[at]).collect();
            let errors = case.expected(&errors, f64::NAN);
            let near = |(got, (value, error)): (f32, (&f32, f64))| {
                f64::from((got - value).abs()) <= error || got.is_nan() && value.is_nan()
            };
            let got = convert::decode(case.dtype, after)?;
            got.len() == values.len() && got.into_iter().zip(values.iter().zip(errors)).all(near)
        }
        Format::Quantized(_) => same_numbers(case.dtype, after, &wanted),
        Format::Dense(_) => after == wanted,
    };
    if same { Ok(()) } else { Err(format!("other numbers than {values:?}").into()) }
}

/// Quantizes through the library's calls.
///
/// # Errors
/// The first thing that was wrong, in words.
pub async fn quantize(context: &Context, case: &Quantizing) -> Result<(), Box<dyn Error>> {
    let stored = case.weights.store(&mut Rng::new(8));
    let Uploaded::Dense(weights) = Uploaded::new(context, &case.weights, &stored)? else {
        return Err("the weights are quantized already".into());
    };
    let made = async {
        let made = weights.quantize(case.format)?;
        made.check().await?;
        made.read().await
    };
    match (case.expected(&stored.values), made.await) {
        (Ok(planes), Ok(matrices)) => {
            let got = |i: usize| matrices.iter().flat_map(move |matrix| matrix.planes()[i].clone());
            match planes.iter().enumerate().find(|(i, plane)| !got(*i).eq(plane.iter().copied())) {
                Some((i, _)) => Err(format!("plane {i} has other bits").into()),
                None => Ok(()),
            }
        }
        (Err(Misuse(_)), Err(Misuse(_))) => Ok(()),
        (wanted, got) => {
            Err(format!("{:?}, wanted {:?}", got.map(|_| ()), wanted.map(|_| ())).into())
        }
    }
}
