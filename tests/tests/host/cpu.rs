//! The CPU executor runs the cases of the kernels.

use tilewise::{Context, DType};
use tilewise_tests::case::{Form, LAYOUTS, mixtures};
use tilewise_tests::{Case, Data, Suite, themes};

fn check(cases: Vec<Case>) {
    let context = Context::cpu();
    let mut suite = Suite::default();
    suite.run("CPU executor", &context, &cases);
    suite.finish("CPU executor");
}

#[test]
fn exact() {
    let mut cases = Vec::new();
    for (i, types) in mixtures().into_iter().enumerate() {
        let case = Case::new([36, 68, 40], types).layout(LAYOUTS[i % 4]).integers();
        cases.extend([case.clone(), case.odd()]);
        if types[0] == types[1] && types[0] == types[2] {
            let case =
                Case { exact: true, ..Case::new([37, 53, 53], types).layout(LAYOUTS[i % 4]) };
            cases.push(Case { b_data: Data::Identity, ..case });
        }
    }
    check(cases);
}

#[test]
fn random() {
    let mut cases = themes::mixed();
    for out in DType::FLOATS {
        for dtype in DType::FLOATS {
            cases.extend(themes::epilogues(
                &Case::new([13, 22, 31], [DType::F32, DType::F16, out]),
                dtype,
            ));
        }
        let case = Case::new([13, 22, 31], [DType::F16, DType::F32, out]);
        cases.extend([themes::gates(&case, out), themes::pairs(&case, out)].concat());
    }
    for size in [[1, 1, 1], [2, 3, 5], [33, 29, 31], [1, 300, 200], [300, 1, 200], [257, 131, 263]]
    {
        cases.push(Case::new(size, [DType::F32; 3]));
    }
    check(cases);
}

#[test]
fn strided() {
    check(themes::strided());
    check(themes::nested());
}

#[test]
fn quantized_and_grouped() {
    check(themes::quantized());
    check(themes::grouped(&themes::ends(), false));
    check(themes::masked());
    check(themes::indexed());
    check(themes::gathered());
    check(themes::along_k(&themes::ends(), false));
    check(themes::along_k(&themes::bad_ends(), true));
    check(themes::listed(&themes::lists()));
    check(themes::aligned_lists());
    let rows = themes::grouped(&themes::ends(), false);
    let columns = rows.iter().map(|case| Case { form: Form::Columns, ..case.clone() });
    check(columns.step_by(2).collect());
    check(themes::in_shards(themes::grouped(&themes::bad_ends(), true)));
}

#[test]
fn nothing() {
    check(themes::empty());
}
