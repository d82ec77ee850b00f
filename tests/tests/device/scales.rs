//! Weights under scales in f32 that f16 lacks: the upload divides them by a power of two.

use tilewise::model::{self, Chunk, Expected, Output, Sink, TensorKind};
use tilewise::{DType, Gemm, PlaneSource, QuantFormat, Quantized, QuantizedTensor, Tensor};
use tilewise_tests::{Rng, contexts};

/// The upload divides scales, and changes no weight: from every source, weights are read back as
/// they were given, and a product equals the power of two times the product of weights about 1.
/// Weights of nvfp4 under a factor give equal products, too.
#[test]
fn scales_that_f16_lacks() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("scaled.safetensors");
    let (n, k) = (8, 512);
    let values: Vec<f32> = (0..3 * k).map(|i| ((i * 7) % 11) as f32 - 5.0).collect();
    let mut rng = Rng::new(17);
    let formats = QuantFormat::all().filter(|format| format.divided_plane().is_some());
    let mut all: Vec<_> = formats.map(|format| (format, true)).collect();
    assert!(all.len() >= 9, "{all:?}");
    all.push((QuantFormat::NVFP4, false));
    for ((format, scaled), power) in all.into_iter().flat_map(|it| [-26, 30].map(|by| (it, by))) {
        let power = 2f32.powi(power);
        let mut sample = || Quantized::sample(format, n, k, || rng.bits() as u32).unwrap();
        let plain = [sample(), sample()];
        let times = |weights: &Quantized| {
            let mut planes = weights.planes().to_vec();
            if !scaled {
                return weights.clone().with_factor(power).unwrap();
            }
            for bytes in planes[1].as_chunks_mut().0 {
                *bytes = (f32::from_le_bytes(*bytes) * power).to_le_bytes();
            }
            Quantized::from_planes(format, n, k, planes).unwrap()
        };
        let given = plain.each_ref().map(times);
        let bytes: Vec<_> =
            (0..2).map(|p| given.each_ref().map(|w| &w.planes()[p][..]).concat()).collect();
        let planes = |sink: &mut Sink<'_>| {
            let mut planes = bytes.iter().enumerate();
            planes.try_for_each(|(plane, bytes)| sink(Chunk { plane, offset: 0, bytes }))
        };
        let output = Output::streamed("w", TensorKind::Quantized(format), &[2, n, k], planes);
        model::write(&path, vec![output], &Default::default(), &mut |_, _| {}).unwrap();
        let factor = if scaled { format.power_of([&bytes[1][..]].into_iter()) } else { power };
        assert_ne!(factor, 1.0, "{format} by {power}");
        for context in contexts() {
            let sources: Vec<_> = bytes.iter().map(|plane| PlaneSource::Bytes(plane)).collect();
            let expected = Expected::from(format);
            let mut made = vec![QuantizedTensor::upload_groups(&context, &given)];
            if scaled {
                let shape = [2, n, k];
                made.push(QuantizedTensor::from_planes(&context, format, &shape, &sources));
                made.push(QuantizedTensor::from_safetensors(&context, &path, "w", &expected));
            }
            let plain = QuantizedTensor::upload_groups(&context, &plain).unwrap();
            let x = Tensor::upload(&context, &values, &[1, 3, k]).unwrap();
            let half = Tensor::upload(&context, &[0.5f32], &[1]).unwrap();
            let read = |y: Tensor| y.read_blocking::<f32>().unwrap();
            let product = |w: &QuantizedTensor| Gemm::new(&x, w).kernel("naive");
            let by = |numbers: Vec<f32>, power: f32| -> Vec<f32> {
                numbers.into_iter().map(|number| number * power).collect()
            };
            let numbers = by(read(plain.dequantize(DType::F32).unwrap()), power);
            let products = by(read(product(&plain).run().unwrap()), power);
            for w in made.into_iter().map(Result::unwrap) {
                let names = format!("{format} by {power} on {context:?}");
                assert_eq!(w.factor(), if scaled { 1.0 } else { power }, "{names}");
                let problems = product(&w).problems().unwrap();
                assert_eq!(problems[0].epilogue.alpha, factor, "{names}");
                assert_eq!(w.read_blocking().unwrap(), given, "{names}");
                assert_eq!(read(w.dequantize(DType::F32).unwrap()), numbers, "{names}");
                assert_eq!(read(product(&w).run().unwrap()), products, "{names}");
                let halves = read(product(&w).alpha_tensor(&half).run().unwrap());
                assert_eq!(halves, by(products.clone(), 0.5), "{names}");
            }
        }
    }
}
