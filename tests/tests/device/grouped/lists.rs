//! Products of any sizes, as a list.

use tilewise::{Activation, DType, Error, Gemm, ProductList, ProductShape, Result, Tensor};
use tilewise_tests::{Suite, contexts, themes};

/// Products of any sizes in one launch. Some lists are ones that a faulty shader left.
#[test]
fn lists_of_products() {
    let listed = themes::listed(&themes::lists());
    // The host accepts only lists that are right.
    let known = [0, 4].map(|right| listed[right].clone().from_host());
    let cases = [&known[..], &listed, &themes::aligned_lists()].concat();
    Suite::on_every_adapter(|adapter| themes::sampled(adapter, &cases, 3));
}

/// A list from the host, and the operations that products of a list refuse.
#[test]
fn lists_from_the_host() -> Result<()> {
    for context in contexts() {
        let upload = |count: usize| {
            let numbers: Vec<f32> = (0..count).map(|i| (i * 5 % 7) as f32 - 3.0).collect();
            Ok::<_, Error>((Tensor::upload(&context, &numbers, &[count])?, numbers))
        };
        let ((a, a_numbers), (b, b_numbers)) = (upload(200)?, upload(150)?);
        let one = ProductShape { m: 7, n: 9, k: 11, lda: 12, ldb: 10, c: 3, ldc: 9, ..CUBE };
        let two = ProductShape { a: 140, b: 120, c: 70, ..CUBE };
        let list = |shapes: &[ProductShape]| ProductList::upload(&context, shapes);
        let mut wanted = vec![0.0f32; 70 + 25];
        for ProductShape { m, n, k, a, lda, b, ldb, c, ldc } in [one, two] {
            for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
                let term = |l| {
                    a_numbers[(a + i * lda + l) as usize] * b_numbers[(b + l * ldb + j) as usize]
                };
                wanted[(c + i * ldc + j) as usize] = (0..k).map(term).sum();
            }
        }
        let both = list(&[one, two])?;
        let gemm = Gemm::list(&a, &b, &both);
        assert_eq!(gemm.output_shape()?, [95]);
        assert_eq!(gemm.run()?.read_blocking::<f32>()?, wanted, "{context:?}");
        context.warm_up_problems(&gemm.problems()?)?;
        assert!(gemm.explain()?.contains("batch 2 of products of a list"), "{}", gemm.explain()?);
        let halves = gemm.clone().out_dtype(DType::F16).run();
        match context.is_cpu() || context.caps().f16 {
            true => assert_eq!(halves?.read_f32_blocking()?, wanted),
            false => {
                assert!(matches!(halves, Err(Error::DeviceLimit(text)) if text.contains("f16")))
            }
        }
        let numbers = Tensor::zeros(&context, DType::U32, &[2, 9])?;
        let written = |numbers: &Tensor| ProductList::from_tensor(numbers, [9, 9, 11]);
        let (bias, wide) = (Tensor::zeros(&context, DType::F32, &[9])?, a.reshape(&[10, 20])?);
        for (gemm, kind, words) in [
            (
                list(&[one, ProductShape { a: 177, ..two }]).map(|list| Gemm::list(&a, &b, &list)),
                "Shape",
                ["product 1 of the list takes 202 elements of A", "200"],
            ),
            (
                list(&[ProductShape { ldb: 15, ..one }]).map(|list| Gemm::list(&a, &b, &list)),
                "Shape",
                ["takes 159 elements of B", "150"],
            ),
            (
                list(&[ProductShape { ldc: 8, ..one }]).map(|list| Gemm::list(&a, &b, &list)),
                "Shape",
                ["product 0", "9 columns, 8 apart"],
            ),
            (
                list(&[two, ProductShape { c: 94, ..one }]).map(|list| Gemm::list(&a, &b, &list)),
                "Shape",
                ["products 0 and 1", "same elements of C"],
            ),
            (Ok(gemm.clone().bias(&bias)), "Unsupported", ["bias", "list"]),
            (Ok(gemm.clone().residual(&wide)), "Unsupported", ["residual", "list"]),
            (Ok(gemm.clone().gated_by(&wide, Activation::Silu)), "Unsupported", ["a gate", "list"]),
            (Ok(gemm.clone().glu(Activation::Silu)), "Unsupported", ["a gate", "list"]),
            (Ok(gemm.clone().gather_rows(&numbers)), "Unsupported", ["a row index", "list"]),
            (Ok(Gemm::list(&wide.t(), &b, &both)), "Shape", ["strides: A has", "[1, 20]"]),
            (
                written(&numbers).map(|list| Gemm::list(&a, &b, &list)),
                "Misuse",
                ["run_into", "long"],
            ),
            (written(&wide).map(|list| Gemm::list(&a, &b, &list)), "Unsupported", ["f32", "u32"]),
            (
                written(&numbers.t()).map(|list| Gemm::list(&a, &b, &list)),
                "Shape",
                ["[9, 2]", "[products, 9]"],
            ),
            (
                Tensor::zeros(&context, DType::U32, &[9, 2])
                    .and_then(|numbers| written(&numbers.t()))
                    .map(|list| Gemm::list(&a, &b, &list)),
                "Shape",
                ["[1, 2]", "contiguous"],
            ),
        ] {
            let error = gemm.and_then(|gemm| gemm.run()).unwrap_err();
            let named = format!("{error:?}").starts_with(kind);
            let text = error.to_string();
            assert!(named && words.iter().all(|word| text.contains(word)), "{error:?}");
        }
        // Plans for a list on the device do not depend on the length of the output.
        assert!(Gemm::list(&a, &b, &written(&numbers)?).explain()?.contains("of a list"));
        let tuned = context.tune_blocking(&gemm.problems()?[0]);
        assert!(matches!(tuned, Err(Error::Unsupported(text)) if text.contains("list")));
    }
    Ok(())
}

/// The host knows of its lists whether places and row strides are whole vectors. For other lists
/// this is promised. Matrix units need it, and a reason against them says so.
#[test]
fn lists_that_are_aligned() -> Result<()> {
    let aligned = ProductShape { lda: 16, ldb: 8, a: 24, b: 56, ..CUBE };
    let one_row = ProductShape { m: 1, lda: 5, ..aligned };
    let no_k = ProductShape { k: 0, a: 1, lda: 1, b: 1, ldb: 1, ..aligned };
    for context in contexts() {
        let steps = |dtype, list: &ProductList| {
            let all = Tensor::zeros(&context, dtype, &[256])?;
            let problem = Gemm::list(&all, &all, list).out_dtype(DType::F32).problems()?.remove(0);
            Ok::<_, Error>([problem.a.ld, problem.b.ld])
        };
        let uploaded = |shapes: &[ProductShape]| {
            let apart = (0..).zip(shapes).map(|(at, shape)| ProductShape { c: 25 * at, ..*shape });
            ProductList::upload(&context, &apart.collect::<Vec<_>>())
        };
        let half = |shapes: &[ProductShape]| steps(DType::F16, &uploaded(shapes)?);
        assert_eq!(half(&[])?, [8, 8]);
        assert_eq!(half(&[aligned, one_row, no_k])?, [8, 8]);
        assert_eq!(half(&[aligned, CUBE])?, [1, 1]);
        assert_eq!(half(&[aligned, ProductShape { a: 28, ..aligned }])?, [1, 8]);
        assert_eq!(half(&[aligned, ProductShape { ldb: 12, ..aligned }])?, [8, 1]);
        let fours = uploaded(&[ProductShape { a: 28, ldb: 12, ..aligned }])?;
        assert_eq!(steps(DType::F32, &fours)?, [4, 4]);
        // A is stored along M and has five lines; B has one column.
        let turned = uploaded(&[one_row, ProductShape { n: 1, ldb: 5, ..aligned }])?;
        assert_eq!(steps(DType::F16, &turned)?, [8, 1]);
        assert_eq!(steps(DType::F16, &turned.transposed(true, true))?, [1, 8]);
        let numbers = Tensor::zeros(&context, DType::U32, &[2, 9])?;
        let written = ProductList::from_tensor(&numbers, [5; 3])?;
        assert_eq!(steps(DType::F16, &written)?, [1, 1]);
        assert_eq!(steps(DType::F16, &written.clone().aligned())?, [8, 8]);
        assert_eq!(steps(DType::F32, &written.aligned())?, [4, 4]);
    }
    Ok(())
}

/// A product of 5×5×5, row by row.
const CUBE: ProductShape =
    ProductShape { m: 5, n: 5, k: 5, a: 0, lda: 5, b: 0, ldb: 5, c: 0, ldc: 5 };
