use super::*;
use tilewise_core::DType;

/// Three rows of two blocks.
fn sample(format: QuantFormat) -> Quantized {
    let mut seed = 1u32;
    let random = || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        seed >> 8
    };
    Quantized::sample(format, 3, 2 * format.block() as usize, random).unwrap()
}

#[test]
fn what_is_written_is_read_back() {
    for format in QuantFormat::all() {
        for prefix in ["", "w", "layers.0.w"] {
            let bytes = to_bytes(&sample(format), prefix).unwrap();
            assert_eq!(from_bytes(&bytes, None, None), Ok(sample(format)));
            assert_eq!(from_bytes(&bytes, Some(prefix), Some(format)), Ok(sample(format)));
            assert!(matches!(from_bytes(&bytes, Some("v"), None), Err(Error::Data(text)) if text.contains("\"v\"")));
            for other in QuantFormat::kinds().into_iter().filter(|other| *other != format) {
                let refused = from_bytes(&bytes, None, Some(other)).unwrap_err().to_string();
                assert!(refused.contains(other.name()) && refused.contains(format.name()), "{refused}");
            }
        }
    }
}

#[test]
fn truncated_files_are_refused() {
    for format in QuantFormat::kinds() {
        let bytes = to_bytes(&sample(format), "w").unwrap();
        for len in 0..bytes.len() {
            assert!(matches!(from_bytes(&bytes[..len], None, None), Err(Error::Data(_))), "{len} bytes");
        }
    }
}

/// Identifies a matrix by type and shape of its tensors.
fn described(expected: Option<QuantFormat>, tensors: &[(&str, &str, &[usize])]) -> Result<Found> {
    identify("w", expected, None, |name| {
        let (_, dtype, shape) = tensors.iter().find(|(own, ..)| name.strip_prefix("w.") == Some(own))?;
        Some(((*dtype).to_owned(), shape.to_vec()))
    })
}

#[test]
fn tensors_without_a_name_are_told_by_their_shapes() {
    let four = QuantFormat::affine(4, 64, DType::F16).unwrap();
    let tensors = |weight: (&'static str, &'static [usize]),
                   scales: (&'static str, &'static [usize]),
                   biases: (&'static str, &'static [usize])| {
        [("weight", weight.0, weight.1), ("scales", scales.0, scales.1), ("biases", biases.0, biases.1)]
    };
    let good = tensors(("U32", &[3, 16]), ("F16", &[3, 2]), ("F16", &[3, 2]));
    assert_eq!(described(Some(four), &good), Ok(Found { format: four, n: 3, k: 128 }));
    for bad in [
        tensors(("F32", &[3, 16]), ("F16", &[3, 2]), ("F16", &[3, 2])),
        tensors(("U32", &[1, 3, 16]), ("F16", &[3, 2]), ("F16", &[3, 2])),
        tensors(("U32", &[3, 12]), ("F16", &[3, 2]), ("F16", &[3, 2])),
        tensors(("U32", &[3, 16]), ("F16", &[3, 4]), ("F16", &[3, 4])),
        tensors(("U32", &[3, 16]), ("F16", &[2, 2]), ("F16", &[2, 2])),
        tensors(("U32", &[3, 16]), ("F16", &[3, 2]), ("F16", &[2, 3])),
        tensors(("U32", &[3, 16]), ("F16", &[3, 2]), ("F32", &[3, 2])),
        tensors(("U32", &[3, 16]), ("I32", &[3, 2]), ("I32", &[3, 2])),
    ] {
        assert!(matches!(described(Some(four), &bad), Err(Error::Data(text)) if text.contains("w.scales")));
    }
    assert!(matches!(described(None, &[]), Err(Error::Data(text)) if text.contains("no tensor \"w.weight\"")));
}

#[test]
fn the_prefix_is_found_when_there_is_one() {
    assert_eq!(only_prefix(["a.weight", "a.scales", "a.biases", "norm.weight"]), Ok("a"));
    assert_eq!(only_prefix(["weight", "scales", "biases"]), Ok(""));
    assert!(matches!(only_prefix(["a.weight", "rescales"]), Err(Error::Data(_))));
    let two = ["a.scales", "a.weight", "a.biases", "b.scales", "b.weight", "b.biases"];
    assert!(matches!(only_prefix(two), Err(Error::Data(text)) if text.contains("a, b")));
}

#[test]
fn metadata_that_contradicts_is_refused() {
    let format = QuantFormat::affine(4, 64, DType::F16).unwrap();
    let with = |name: &str| HashMap::from([(FORMAT.to_string(), name.to_string())]);
    for (name, expected) in [("affine-4bit-g64-f32", Some(format)), ("nonsense", None)] {
        let refused = identify("w", expected, Some(&with(name)), |_| None);
        assert!(matches!(refused, Err(Error::Unsupported(text)) if text.contains(name)));
    }
}
