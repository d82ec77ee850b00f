//! Taking and quantizing: in the sanitizer to the last bit, and through the library's calls on
//! every adapter and on the CPU executor.

use rayon::prelude::*;
use tilewise::{Context, Error, Quantize, QuantizedTensor, Take, Tensor};
use tilewise_core::kernel::Role;
use tilewise_core::plan::Table;
use tilewise_core::quant::{dequantize, quantize, quantize_to};
use tilewise_core::{Caps, DType, Format, QuantFormat, plan};
use tilewise_shaders::CONVERSIONS;
use tilewise_tests::cases::devices;
use tilewise_tests::conversions::{
    self, Data, Quantizing, Source, Taking, few_texts, pieces, quantizing, taking,
};
use tilewise_tests::sanitized::{Conversion, Shaders, options};
use tilewise_tests::{Rng, adapters, contexts};

/// Runs conversions in the sanitizer, and fails with the errors of the first few.
fn clean(conversions: Vec<Conversion>) {
    let shaders = Shaders::of_library();
    let run = |conversion: &Conversion| {
        let failure = conversion.run(shaders, &options()).err()?;
        Some(format!("{failure}\n    {}", conversion.name))
    };
    let failures: Vec<_> = conversions.par_iter().filter_map(run).collect();
    let shown = failures.iter().take(3).cloned().collect::<Vec<_>>().join("\n");
    assert!(failures.is_empty(), "{} of {} failed:\n{shown}", failures.len(), conversions.len());
}

fn device() -> Caps {
    devices()[0].clone()
}

#[test]
fn taking_sanitized() {
    clean(taking().iter().map(|case| Conversion::taking(case, &device()).unwrap()).collect());
}

#[test]
fn quantizing_sanitized() {
    clean(
        quantizing().iter().map(|case| Conversion::quantizing(case, &device()).unwrap()).collect(),
    );
}

/// Operands that do not fit a binding take several passes.
#[test]
fn pieces_sanitized() {
    let pieces: Vec<_> = pieces().into_iter().map(Result::unwrap).collect();
    for piece in &pieces {
        assert!(piece.passes.len() > 1, "{}", piece.name);
    }
    clean(pieces);
}

/// A stack whose rows are no multiple of 256 is cut between entries, where all planes are aligned.
#[test]
fn stacks_are_cut_at_aligned_entries() {
    let binding = |bytes| Caps { max_binding_bytes: bytes, ..Caps::webgpu_default() };
    // The number of an entry's blocks is a multiple of 128, of 8 or of 2. As many entries stay
    // together as make a multiple of 256.
    for (shape, limit, wanted) in [
        ([32, 2880, 2880], 128 << 20, Some(vec![8; 4])),
        ([40, 8, 32], 18_000, Some(vec![32, 8])),
        ([40, 2879, 2880], 128 << 20, None),
    ] {
        let [entries, rows, columns] = shape;
        let weights = Table::packed(Format::Dense(DType::BF16), entries, rows, columns);
        let (format, caps) = (QuantFormat::MXFP4, binding(limit));
        let passes = plan::quantize(
            &plan::Quantize { weights, format, pitch: weights.columns },
            &caps,
            &CONVERSIONS,
        );
        let Some(wanted) = wanted else {
            let bytes = entries * rows * columns * 2;
            let which = "max_storage_buffer_binding_size";
            let refused = Error::too_large("the weights", bytes, limit, which);
            assert_eq!(passes.unwrap_err(), refused);
            continue;
        };
        let passes = passes.unwrap();
        let cut: Vec<u32> = passes.iter().map(|pass| pass.params.entries).collect();
        assert_eq!(cut, wanted, "{shape:?}");
        let mut first = 0;
        for pass in passes {
            assert_eq!((u64::from(pass.params.first_row), pass.params.a_offset), (first * rows, 0));
            let row = |role: Role| match role {
                Role::A => columns * 2,
                _ => columns / format.block() * format.planes()[role.plane()].bytes,
            };
            for binding in pass.bindings.iter().filter(|binding| binding.role != Role::Status) {
                assert_eq!(
                    binding.start,
                    first * rows * row(binding.role),
                    "{binding:?} of {shape:?}"
                );
                let aligned = binding.start.is_multiple_of(caps.storage_alignment.into());
                assert!(aligned && binding.bytes <= limit, "{binding:?} of {shape:?}");
            }
            first += u64::from(pass.params.entries);
        }
        assert_eq!(first, entries);
    }
    let weights = Source::new(Format::Dense(DType::BF16), [40, 8, 32], Data::Weights);
    let case = Quantizing { weights, format: QuantFormat::MXFP4 };
    clean(vec![Conversion::quantizing(&case, &binding(18_000)).unwrap()]);
}

#[test]
fn taking_on_devices() {
    for context in contexts() {
        let passes = |case: &Taking| {
            let table = case.table.store(&mut Rng::new(7)).table;
            plan::take(&case.problem(table), context.caps(), &CONVERSIONS).unwrap()
        };
        // The CPU executor has no shaders.
        let cases = if context.is_cpu() { taking() } else { few_texts(taking(), passes) };
        println!("{} cases on {context:?}", cases.len());
        for case in cases {
            pollster::block_on(conversions::take(&context, &case))
                .unwrap_or_else(|wrong| panic!("{wrong}: {case:?} on {context:?}"));
        }
    }
}

/// A whole matrix may have a factor.
#[test]
fn factors() {
    let weights: Vec<f32> = (0..64).map(|i| (i as f32 - 20.0) * 1e-4).collect();
    let quantized = quantize_to(&weights, 2, 32, QuantFormat::NVFP4, 0.0043).unwrap();
    assert!(quantized.factor() != 1.0);
    let (values, errors) = (dequantize(&quantized), quantized.weight_error());
    for context in contexts() {
        let table = QuantizedTensor::upload(&context, &quantized).unwrap();
        assert_eq!(table.read_blocking().unwrap(), std::slice::from_ref(&quantized));
        let got = table.dequantize(DType::F32).unwrap().read_blocking::<f32>().unwrap();
        for ((got, value), error) in got.iter().zip(&values).zip(&errors) {
            assert!(
                f64::from((got - value).abs()) <= *error,
                "{got} for {value} within {error} on {context:?}"
            );
        }
    }
}

#[test]
fn quantizing_on_devices() {
    for context in contexts() {
        let passes = |case: &Quantizing| {
            let table = case.weights.store(&mut Rng::new(8)).table;
            plan::quantize(&case.problem(table), context.caps(), &CONVERSIONS).unwrap()
        };
        let cases = if context.is_cpu() { quantizing() } else { few_texts(quantizing(), passes) };
        println!("{} cases on {context:?}", cases.len());
        for case in cases {
            pollster::block_on(conversions::quantize(&context, &case))
                .unwrap_or_else(|wrong| panic!("{wrong}: {case:?} on {context:?}"));
        }
    }
}

/// A whole model's vocabulary is quantized and looked up in one pass of the caller's.
#[test]
fn many_rows_in_one_pass() {
    let [rows, columns] = [33_000, 32];
    let mut rng = Rng::new(3);
    let weights: Vec<f32> = (0..rows * columns).map(|_| rng.number()).collect();
    let wanted = quantize(&weights, rows, columns, QuantFormat::MXFP8).unwrap();
    let indices: Vec<u32> = (0..rows as u32).map(|i| i * 7 % rows as u32).collect();
    let values = dequantize(&wanted);
    let looked_up: Vec<f32> = indices
        .iter()
        .flat_map(|&row| &values[row as usize * columns..][..columns])
        .copied()
        .collect();
    for adapter in adapters() {
        let context = &adapter.context;
        let w = Tensor::upload(context, &weights, &[rows, columns]).unwrap();
        let tokens = Tensor::upload(context, &indices, &[rows]).unwrap();
        let quantized =
            QuantizedTensor::zeros(context, QuantFormat::MXFP8, &[rows, columns]).unwrap();
        let x = Tensor::zeros(context, DType::F32, &[rows, columns]).unwrap();
        let mut encoder = context.device().unwrap().create_command_encoder(&Default::default());
        {
            let mut pass = encoder.begin_compute_pass(&Default::default());
            Quantize::new(&w, QuantFormat::MXFP8).record(&mut pass, &quantized).unwrap();
            Take::new(&quantized).rows(&tokens).record(&mut pass, &x).unwrap();
        }
        context.queue().unwrap().submit([encoder.finish()]);
        quantized.check_blocking().unwrap();
        assert!(
            quantized.read_blocking().unwrap() == std::slice::from_ref(&wanted),
            "{}",
            adapter.name()
        );
        assert!(x.read_blocking::<f32>().unwrap() == looked_up, "{}", adapter.name());
    }
}

#[test]
fn what_does_not_fit_is_an_error() {
    for context in contexts() {
        let table = Tensor::upload(&context, &[1.0f32; 96], &[3, 32]).unwrap();
        let floats = Tensor::upload(&context, &[1.0f32], &[1]).unwrap();
        let indices = Tensor::upload(&context, &[1u32, 2], &[2]).unwrap();
        assert!(matches!(
            table.rows(&floats),
            Err(Error::Unsupported(text)) if text.contains("f32, wanted u32")
        ));
        let square = indices.reshape(&[1, 2]).unwrap();
        assert!(matches!(
            table.rows(&square),
            Err(Error::Shape(text)) if text.contains("[1, 2], wanted a vector")
        ));
        assert!(matches!(
            floats.rows(&indices),
            Err(Error::Shape(text)) if text.contains("a table of shape [1]")
        ));
        let take = Take::new(&table).rows(&indices);
        assert!(
            matches!(take.run_into(&table), Err(Error::Shape(text)) if text.contains("f32 [2, 32]"))
        );
        let view = table.slice(&[0..2, 0..32]).unwrap();
        assert!(tilewise_tests::fails_with(
            &take.run_into(&view),
            "aliasing: the output and the table"
        ));
        let integers = Tensor::upload(&context, &[1i32; 4], &[2, 2]).unwrap();
        let taken = Take::new(&integers).rows(&indices).out_dtype(DType::F32).run();
        assert!(matches!(taken, Err(Error::Unsupported(text)) if text.contains("taken as f32")));
        let taken = Take::new(&table).rows(&indices).out_dtype(DType::U32).run();
        assert!(matches!(taken, Err(Error::Unsupported(text)) if text.contains("taken as u32")));
        let other = Tensor::upload(&Context::cpu(), &[0u32], &[1]).unwrap();
        assert!(tilewise_tests::fails_with(&table.rows(&other), "wrong context: "));

        let narrow = table.slice(&[0..3, 0..31]).unwrap();
        assert!(matches!(
            narrow.quantize(QuantFormat::MXFP8),
            Err(Error::Shape(text)) if text.contains("31")
        ));
        assert!(integers.quantize(QuantFormat::MXFP8).is_err());
        let uploaded = quantize(&[1.0; 96], 3, 32, QuantFormat::MXFP8).unwrap();
        let uploaded = QuantizedTensor::upload(&context, &uploaded).unwrap();
        let into = Quantize::new(&table, QuantFormat::MXFP8).run_into(&uploaded);
        assert!(matches!(into, Err(Error::Misuse(text)) if text.contains("zeros")));
        let out = QuantizedTensor::zeros(&context, QuantFormat::MXFP4, &[3, 32]).unwrap();
        let into = Quantize::new(&table, QuantFormat::MXFP8).run_into(&out);
        assert!(matches!(into, Err(Error::Shape(text)) if text.contains("mxfp8")));
        // Some formats are made on the CPU only.
        assert_eq!(table.quantize(QuantFormat::Q4_0).is_ok(), context.is_cpu());
        // Only nvfp4 has a factor.
        let zeros = |format| QuantizedTensor::zeros(&context, format, &[3, 32]).unwrap();
        let reversed: Vec<u32> = (0..32).rev().collect();
        for (format, out) in [
            (QuantFormat::NVFP4, zeros(QuantFormat::NVFP4).with_factor(2.0)),
            (QuantFormat::MXFP8, zeros(QuantFormat::MXFP8).with_order(&reversed)),
        ] {
            let refused = Quantize::new(&table, format).run_into(&out.unwrap());
            assert!(matches!(
                &refused,
                Err(Error::Unsupported(text)) if text.contains("a factor or an order")
            ));
        }
    }
}

/// Errors name the matrix and the row. An output reports on the last weights that it was given.
#[test]
fn weights_that_cannot_be_stored() {
    let is_named = |error: &Error| {
        let text = error.to_string();
        let named = ["matrix 1: ", "row 1"].iter().all(|part| text.contains(part));
        named && matches!(error, Error::Misuse(_))
    };
    for context in contexts() {
        let mut weights = [0.5f32; 2 * 3 * 32];
        let good = Tensor::upload(&context, &weights, &[2, 3, 32]).unwrap();
        weights[4 * 32 + 7] = f32::NAN;
        let bad = Tensor::upload(&context, &weights, &[2, 3, 32]).unwrap();
        let out = QuantizedTensor::zeros(&context, QuantFormat::MXFP8, &[2, 3, 32]).unwrap();
        let quantize = |weights: &Tensor| {
            Quantize::new(weights, QuantFormat::MXFP8).run_into(&out)?;
            out.check_blocking()
        };
        for _ in 0..2 {
            let refused = quantize(&bad).unwrap_err();
            assert!(is_named(&refused), "{refused} on {context:?}");
            quantize(&good).unwrap_or_else(|error| panic!("{error} on {context:?}"));
            let alone = good.quantize(QuantFormat::MXFP8).unwrap();
            assert_eq!(out.read_blocking().unwrap(), alone.read_blocking().unwrap());
        }
        let refused = bad.quantize_blocking(QuantFormat::MXFP8).unwrap_err();
        assert!(is_named(&refused), "{refused} on {context:?}");
        let from_host =
            QuantizedTensor::quantize(&context, &weights, [2, 3, 32], QuantFormat::MXFP8);
        let refused = from_host.unwrap_err();
        assert!(is_named(&refused), "{refused} on {context:?}");
    }
}

/// Integers keep all of their bits, in any layout. An index beyond the table gives an invalid
/// index.
#[test]
fn integers_by_index() {
    for context in contexts() {
        let words: Vec<u32> = (0..24).map(|i: u32| i.wrapping_mul(0x9E37_79B9)).collect();
        let table = Tensor::upload(&context, &words, &[2, 3, 4]).unwrap();
        let bytes = bytemuck::cast_slice(&words);
        let signed = Tensor::from_bytes(&context, DType::I32, bytes, &[2, 3, 4]).unwrap();
        let indices = [2u32, 0, 3, u32::MAX];
        let rows = Tensor::upload(&context, &indices, &[4]).unwrap();
        let at = |entry: usize, row: u32, column: u32| match (row, column) {
            (0..3, 0..4) => words[entry * 12 + row as usize * 4 + column as usize],
            _ => u32::MAX,
        };
        let pairs = |rows: &[u32], columns: &[u32]| -> Vec<u32> {
            let all = (0..2).flat_map(|entry| rows.iter().map(move |row| (entry, *row)));
            all.flat_map(|(entry, row)| columns.iter().map(move |column| at(entry, row, *column)))
                .collect()
        };
        let read = |take: Take| take.run().unwrap().read_blocking::<u32>().unwrap();
        let wanted = pairs(&indices, &[0, 1, 2, 3]);
        assert_eq!(read(Take::new(&table).rows(&rows)), wanted, "{context:?}");
        let both = Take::new(&table).rows(&rows).columns(&rows);
        assert_eq!(read(both), pairs(&indices, &indices), "{context:?}");
        let turned = table.permute(&[0, 2, 1]).unwrap();
        let back = Take::new(&turned).columns(&rows).run().unwrap();
        let back = back.permute(&[0, 2, 1]).unwrap().read_blocking::<u32>().unwrap();
        assert_eq!(back, wanted, "{context:?}");
        let part = signed.narrow(2, 1, 2).unwrap().narrow(1, 1, 2).unwrap();
        let part = part.rows(&rows.narrow(0, 1, 2).unwrap()).unwrap();
        let part = part.read_blocking::<i32>().unwrap();
        let wanted = [5, 6].map(|i| words[i] as i32);
        assert_eq!((&part[..2], &part[2..4]), (&wanted[..], &[i32::MIN; 2][..]), "{context:?}");
    }
}
