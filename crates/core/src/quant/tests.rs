//! Tests of every format by its definition, and of the affine ones by name.

use super::*;
use crate::{DType, Error, convert};

/// Numbers that look random.
fn random() -> impl FnMut() -> u32 {
    let mut state = 0x9e37_79b9_u32;
    move || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state
    }
}

fn waves(count: usize) -> Vec<f32> {
    (0..count).map(|i| (i as f32 * 0.7).sin() + 0.3).collect()
}

fn affine(scales: DType) -> QuantFormat {
    QuantFormat::affine(4, 64, scales).unwrap()
}

/// Scales are divided if f16 lacks their weights, and only if the division is exact.
#[test]
fn powers_of_scales() {
    let format: QuantFormat = "fp8-e4m3-g32".parse().unwrap();
    let tiny = f32::MIN_POSITIVE;
    for (scales, power) in [
        (&[1.0][..], 1.0),
        (&[], 1.0),
        (&[0.0, f32::NAN], 1.0),
        // The largest number is 448, which is 1.75 · 2^8.
        (&[2f32.powi(-16), 0.0], 1.0),
        (&[-(2f32.powi(-17)), 2f32.powi(-40)], 0.5),
        (&[64.0], 1.0),
        (&[64.0, -128.0, f32::INFINITY], 2.0),
        // The smallest number is 2^-9.
        (&[128.0, 1023.0 * tiny], 1.0),
        (&[128.0, 1024.0 * tiny], 2.0),
        (&[1e36], 1.0),
        (&[1e30], 2f32.powi(24)),
        (&[1e-8, 1e-41], 2f32.powi(-10)),
        (&[1e-44], 2f32.powi(-24)),
        (&[1e-12, f32::from_bits(0x7f80_0001)], 2f32.powi(-24)),
    ] {
        let bytes: Vec<u8> = scales.iter().flat_map(|scale: &f32| scale.to_le_bytes()).collect();
        let parts = bytes.chunks(4);
        assert_eq!(format.power_of(parts), power, "{scales:?}");
        let back = format.divided(1, &format.divided(1, &bytes, power), 1.0 / power).into_owned();
        assert_eq!(back, bytes, "{scales:?}");
    }
    assert_eq!(QuantFormat::Q8_0.power_of([&[0; 64][..]].into_iter()), 1.0);
}

/// A matrix unit's weights, in f16 under the power, are off by at most 2^-11 of themselves plus
/// 2^-17 of the largest that the scales allow, if that is from 2^-32 to 2^39.
#[test]
fn powers_keep_weights_in_f16() {
    for format in QuantFormat::all().filter(|format| format.divided_plane().is_some()) {
        let mut random = random();
        let sample = Quantized::sample(format, 16, 256, &mut random).unwrap();
        for steps in (-24..36).step_by(4) {
            // Scales of a row are up to 2^15 smaller than others.
            let scales: Vec<u8> = (0..)
                .zip(sample.planes()[1].as_chunks().0)
                .flat_map(|(i, own)| {
                    (f32::from_le_bytes(*own) * 2f32.powi(steps - i % 16)).to_le_bytes()
                })
                .collect();
            let power = format.power_of([&scales[..]].into_iter());
            let under = format.divided(1, &scales, power).into_owned();
            let numbers = |scales: &[u8]| {
                let planes = vec![sample.planes()[0].clone(), scales.to_vec()];
                dequantize(&Quantized::from_planes(format, 16, 256, planes).unwrap())
            };
            let wanted = numbers(&scales);
            let largest = wanted.iter().fold(0f32, |most, w| most.max(w.abs()));
            for (wanted, under) in wanted.into_iter().zip(numbers(&under)) {
                let found = convert::round(DType::F16, under) * power;
                let most = wanted.abs() * 2f32.powi(-11) + largest * 2f32.powi(-17);
                assert!((found - wanted).abs() <= most, "{format}, {steps}: {found}, {wanted}");
            }
        }
    }
}

#[test]
fn every_row_is_complete() {
    let mut names = std::collections::HashSet::new();
    for format in QuantFormat::all() {
        let FormatDef { name, family, block, planes, codec, .. } = format.def();
        assert!(names.insert(name) && !family.is_empty(), "{name}");
        assert_eq!(name.parse::<QuantFormat>().as_ref(), Ok(&format));
        assert!((1..=4).contains(&planes.len()), "{name} has {} planes", planes.len());
        for plane in *planes {
            assert!(
                plane.bytes > 0 && plane.bytes.is_multiple_of(plane.of.bytes()),
                "{name}: {plane:?}"
            );
        }
        let [n, k] = [3, 2 * *block as usize];
        let sizes = format.sizes(n, k).unwrap();
        assert!(
            sizes.iter().zip(*planes).all(|(size, plane)| *size as u64 == 6 * plane.bytes),
            "{name}"
        );

        // Integers are -1, 0 or 1, and both signs occur.
        let mut random = random();
        let planes = format.encode_blocks(6, |_, block| {
            codec.integers(&mut random, block);
            Ok(())
        });
        let planes = planes.unwrap();
        let integers = Quantized::from_planes(format, n, k, planes).unwrap();
        let values = dequantize(&integers);
        assert!(values.iter().all(|v| [-1.0, 0.0, 1.0].contains(v)), "{name}: {values:?}");
        assert!([-1.0, 1.0].iter().all(|v| values.contains(v)), "{name}");

        // Samples are of the size of 1, and errors small.
        let mut random = self::random();
        let samples = Quantized::sample(format, n, k, &mut random).unwrap();
        let values = dequantize(&samples);
        let most = values.iter().fold(0f32, |most, v| most.max(v.abs()));
        assert!((0.25..=4.0).contains(&most), "{name}: {most}");
        for (w, error) in values.iter().zip(samples.weight_error()) {
            assert!(
                error >= 0.0 && error <= 1e-6 * f64::from(w.abs()).max(1.0),
                "{name}: {w} within {error}"
            );
        }
        let [again, blocks] = [samples.to_blocks(), samples.to_blocks()];
        match format.gguf() {
            Some(number) => {
                assert_eq!(QuantFormat::from_gguf(number), Some(format));
                assert_eq!(
                    Quantized::from_blocks(format, n, k, &blocks.unwrap()).unwrap(),
                    samples
                );
            }
            None => assert!(matches!(again, Err(Error::Unsupported(_)))),
        }
        if !format.quantizes() {
            let refused = quantize(&waves(n * k), n, k, format);
            assert!(matches!(refused, Err(Error::Unsupported(text)) if text.contains(name)));
            continue;
        }

        // A weight differs from its code by at most the step of its block, and no step is too
        // large.
        let weights = waves(n * k);
        let quantized = quantize(&weights, n, k, format).unwrap();
        let restored = dequantize(&quantized);
        let most = weights.iter().fold(0f32, |most, w| most.max(w.abs()));
        let worst = weights.iter().zip(&restored).map(|(w, r)| (w - r).abs()).fold(0f32, f32::max);
        assert!(worst > 0.0 && worst < 0.35 * most, "{name}: {worst}");
        let steps = quantized.steps();
        for (i, (w, r)) in weights.iter().zip(&restored).enumerate() {
            let step = steps[i / *block as usize];
            assert!(
                f64::from((w - r).abs()) <= step && step < 0.6 * f64::from(most),
                "{name}: {w} became {r}"
            );
        }

        // Errors are small and cover a value's own rounding.
        for (w, error) in restored.iter().zip(quantized.weight_error()) {
            assert!(
                error >= 0.0 && error <= 1e-6 * f64::from(w.abs()).max(1.0),
                "{name}: {w} within {error}"
            );
        }
    }
}

#[test]
fn every_format_refuses_what_does_not_fit() {
    for format in QuantFormat::all().filter(|format| format.quantizes()) {
        let block = format.block() as usize;
        let refuse = |weights: &[f32], n, k| quantize(weights, n, k, format).unwrap_err();
        let short = refuse(&vec![0.0; block - 1], 1, block - 1).to_string();
        assert!(
            short.contains(&format!("K = {} is not a multiple of {block}", block - 1)),
            "{short}"
        );
        assert!(matches!(refuse(&vec![0.0; block], 2, block), Error::Shape(_)));
        assert!(refuse(&[], usize::MAX, block).to_string().starts_with("overflow: "));
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut weights = vec![0.0; 3 * block];
            weights[block + 6] = bad;
            let place = "row 1, column 6";
            assert!(matches!(
                refuse(&weights, 3, block),
                Error::Misuse(text) if text.contains(place)
            ));
        }
        let planes: Vec<_> =
            format.planes().iter().map(|plane| vec![0; 4 * plane.bytes as usize]).collect();
        assert!(Quantized::from_planes(format, 2, 2 * block, planes.clone()).is_ok());
        let without = planes[1..].to_vec();
        assert!(matches!(
            Quantized::from_planes(format, 2, 2 * block, without),
            Err(Error::Shape(_))
        ));
        for (i, plane) in format.planes().iter().enumerate() {
            let mut planes = planes.clone();
            planes[i].pop();
            let refused = Quantized::from_planes(format, 2, 2 * block, planes);
            assert!(matches!(refused, Err(Error::Shape(text)) if text.contains(plane.name)));
        }
        for (n, k) in [(0, block), (0, 0), (3, 0)] {
            assert!(dequantize(&quantize(&[], n, k, format).unwrap()).is_empty());
        }
    }
}

#[test]
fn codes_of_any_width() {
    for bits in 1..=8 {
        let codes: Vec<u32> = (0..64).map(|i| (i * 37) & ((1 << bits) - 1)).collect();
        let mut bytes = vec![0xff; 8 * bits as usize];
        bits::write_codes(&mut bytes, bits, codes.iter().copied());
        assert_eq!(bits::read_codes(&bytes, bits).collect::<Vec<_>>(), codes, "{bits} bits");
    }
    assert_eq!(bits::read_codes(&[0x21, 0x43], 4).collect::<Vec<_>>(), [1, 2, 3, 4]);
}

#[test]
fn a_ramp_is_exact_with_a_negative_scale() {
    let ramp: Vec<f32> = (0..64).map(|i| (i % 16) as f32).collect();
    let q = quantize(&ramp, 1, 64, affine(DType::F32)).unwrap();
    assert_eq!(q.planes()[0][..4], 0x89ab_cdef_u32.to_le_bytes());
    assert_eq!(
        (&q.planes()[1][..], &q.planes()[2][..]),
        (&(-1f32).to_le_bytes()[..], &15f32.to_le_bytes()[..])
    );
    assert_eq!(dequantize(&q), ramp);
}

#[test]
fn weight_error_covers_fused_and_exact_arithmetic() {
    let q = quantize(&waves(256), 2, 128, affine(DType::F32)).unwrap();
    let numbers = |plane: usize| convert::decode_exact(DType::F32, &q.planes()[plane]);
    let (scales, biases) = (numbers(1), numbers(2));
    let codes = bits::read_codes(&q.planes()[0], 4).enumerate();
    let fused: Vec<f32> =
        codes.map(|(i, code)| scales[i / 64].mul_add(code as f32, biases[i / 64])).collect();
    let unfused = dequantize(&q);
    assert_ne!(fused, unfused);
    for ((f, u), error) in fused.iter().zip(&unfused).zip(q.weight_error()) {
        assert!(f64::from(f - u).abs() <= error && error < 1e-6, "{f} and {u} within {error}");
    }
}

#[test]
fn weight_error_covers_scales_read_as_zero() {
    // Scales may be subnormal: in f16, and, for mxfp4, in f32 if the byte is 0.
    for (name, power) in [
        ("affine-4bit-g64-f16", -20),
        ("affine-8bit-g32-f16", -20),
        ("q8_0", -20),
        ("q4_0", -20),
        ("q5_1", -20),
        ("mxfp4", -129),
    ] {
        let format: QuantFormat = name.parse().unwrap();
        let tiny: Vec<f32> = (0..64).map(|i| ((i % 16) as f64 * 2f64.powi(power)) as f32).collect();
        let q = quantize(&tiny, 1, 64, format).unwrap();
        let restored = dequantize(&q);
        assert!(restored.iter().any(|w| *w != 0.0), "{name}");
        for (w, error) in restored.iter().zip(q.weight_error()) {
            assert!(f64::from(w.abs()) <= error, "{name}: {w} within {error}");
        }
    }
}

/// A product that overflows may be finite if it is fused with the sum: nothing is promised.
/// Infinities and NaN of the file have no error.
#[test]
fn weight_error_of_what_overflows() {
    for (name, numbers, infinite) in [
        ("affine-4bit-g64-f32", [1e38, -3e38], true),
        ("affine-4bit-g64-f32", [1e36, -3e38], false),
        ("affine-4bit-g64-f32", [f32::INFINITY, 1.0], false),
        ("affine-4bit-g64-f32", [1e38, f32::NEG_INFINITY], false),
        ("affine-4bit-g64-f16", [f32::NAN, 1.0], false),
        ("q8_0", [f32::INFINITY, 0.0], false),
        ("q4_1", [f32::INFINITY, f32::NAN], false),
        ("q4_k", [f32::INFINITY, 1.0], false),
        ("q6_k", [f32::NAN, 0.0], false),
    ] {
        let format: QuantFormat = name.parse().unwrap();
        let mut random = random();
        let planes = format.encode_blocks(1, |_, block| {
            format.def().codec.sample(&mut random, block);
            format.def().codec.rescale(numbers, block);
            Ok(())
        });
        let q =
            Quantized::from_planes(format, 1, format.block() as usize, planes.unwrap()).unwrap();
        let errors = q.weight_error();
        assert_eq!(errors.iter().any(|error| error.is_infinite()), infinite, "{name} {numbers:?}");
        assert!(errors.iter().all(|error| *error >= 0.0), "{name} {numbers:?}: {errors:?}");
    }
}

#[test]
fn scales_beyond_their_type_are_refused_by_name() {
    let mut wide = [f32::MAX; 64];
    wide[1] = f32::MIN;
    assert!(matches!(quantize(&wide, 1, 64, affine(DType::F32)), Err(Error::Misuse(_))));
    let refused = quantize(&[1e6; 64], 1, 64, affine(DType::F16));
    assert!(matches!(refused, Err(Error::Misuse(text)) if text.contains("range of f16")));
    let unknown = QuantFormat::affine(4, 64, DType::I32);
    assert!(matches!(
        unknown,
        Err(Error::Unsupported(text))
            if text.contains("i32") && text.contains("affine-4bit-g64-f32")
    ));
}

/// Long rows whose codes would lie a multiple of 512 bytes apart have gaps of whole blocks, others
/// none.
#[test]
fn pitches() {
    for (format, k, pitch) in [
        ("affine-4bit-g64-f16", 2048, 2048 + 64),
        ("affine-4bit-g64-f16", 14336, 14336 + 64),
        ("affine-4bit-g64-f16", 3072, 3072 + 64),
        ("affine-3bit-g64-f16", 4096, 4096 + 128),
        ("affine-4bit-g64-f16", 2112, 2112),
        ("affine-4bit-g64-f16", 1024, 1024),
        ("affine-8bit-g64-f16", 1024, 1024 + 64),
        ("mxfp4", 4096, 4096 + 64),
        ("q8_0", 1024, 1024 + 32),
        ("q4_k", 2048, 2048),
        ("q8_0", 0, 0),
        // No matrix has such rows: `sizes` refuses them.
        ("q8_0", 1025, 1025),
        ("q8_0", u64::MAX / 1024 * 1024, u64::MAX / 1024 * 1024 + 32),
    ] {
        assert_eq!(format.parse::<QuantFormat>().unwrap().pitch(k), pitch, "{format} {k}");
    }
    for format in QuantFormat::all() {
        for k in (0..200).map(|blocks| blocks * format.block()) {
            let gap = format.pitch(k) - k;
            assert!(gap.is_multiple_of(format.block()) && gap * 8 <= k, "{format} {k}");
        }
    }
}
