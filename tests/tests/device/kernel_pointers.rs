//! Pointers that custom kernels pass to functions. Pointers to whole variables are allowed.
//! Pointers to parts are not: naga's SPIR-V writer cannot express them.

use tilewise::{Call, Context, DType, Error, Kernel, Tensor};
use tilewise_tests::contexts;

const HEADER: &str = "
struct Two { one: f32, other: array<f32, 3> }
var<private> mine: array<f32, 4>;
var<private> two: Two;
fn f(p: ptr<function, f32>) -> f32 { *p += 1.0; return *p; }
fn g(p: ptr<private, f32>) -> f32 { *p += 1.0; return *p; }
fn v(p: ptr<function, vec3<f32>>) -> f32 { return (*p).y; }
fn whole(p: ptr<function, array<f32, 3>>) -> f32 { (*p)[1] += 1.0; return (*p)[1]; }
fn own(p: ptr<private, array<f32, 4>>) -> f32 { let q = &(*p)[2]; *q += 1.0; return *q; }
";

fn kernel(header: &str, body: &str) -> Kernel {
    Kernel::new("mine").inputs(["a"]).outputs(["out"]).header(header).source(body)
}

fn call(context: &Context) -> Call {
    let a = Tensor::upload(context, &[1.0f32, 2.0, 3.0, 4.0], &[4]).unwrap();
    Call::new(context).input(&a).output(DType::F32, &[4]).grid([4, 1, 1])
}

#[track_caller]
fn refused(context: &Context, kernel: &Kernel, place: &str) {
    let error = kernel.run(&call(context)).unwrap_err();
    let text = error.to_string();
    assert!(
        matches!(error, Error::Misuse(_)) && text.contains("a pointer to a part of a variable"),
        "{text}"
    );
    assert!(text.contains(place), "{text:?} lacks {place:?}");
}

#[test]
fn parts_of_variables_are_refused_with_their_place() {
    const T: &str = "var t = array<f32, 3>(1.0, a[0], 3.0);\n";
    for context in contexts() {
        for (body, place) in [
            (format!("{T}out[global_id.x] = f(&t[1]);"), "mine (body):2:"),
            (format!("{T}let i = global_id.x % 3u;\nout[0] = f(&t[i]);"), "mine (body):3:"),
            (format!("{T}let p = &t[1];\nout[0] = f(p);"), "mine (body):2:"),
            (format!("{T}if t[0] > 0.0 {{\n out[0] = f(&t[1]); }}"), "mine (body):3:"),
            (format!("{T}if t[0] > 0.0 {{ out[0] = 1.0; }} else {{\n f(&t[1]); }}"), ":3:"),
            (format!("{T}for (var i = 0; i < 3; i++) {{\n out[i] = f(&t[i]); }}"), ":3:"),
            (
                format!("{T}loop {{ out[0] = 1.0;\n continuing {{\nf(&t[1]); break if true; }} }}"),
                ":4:",
            ),
            (
                format!(
                    "{T}switch i32(t[0]) {{ case 1: {{\nf(&t[1]); }} default {{}} }} out[0] = t[1];"
                ),
                ":3:",
            ),
            (format!("{T}out[0] = 0.0; {{ {{\nout[1] = f(&t[1]); }} }}"), "mine (body):3:"),
            ("var s: Two; out[0] = f(&s.one);".into(), "mine (body):1:"),
            ("var s: Two; out[0] = f(&s.other[1]);".into(), "mine (body):1:"),
            ("var s: Two; out[0] = whole(&s.other);".into(), "mine (body):1:"),
            ("var m: mat2x3<f32>; out[0] = v(&m[1]);".into(), "mine (body):1:"),
            ("out[0] = g(&mine[2]);".into(), "mine (body):1:"),
            ("out[0] = g(&two.one);".into(), "mine (body):1:"),
        ] {
            refused(&context, &kernel(HEADER, &body), place);
        }
        // The pointer is in a function of the header that nothing calls.
        let header = format!(
            "{HEADER}fn h(p: ptr<function, array<f32, 3>>) -> f32 {{\n    return f(&(*p)[1]);\n}}"
        );
        refused(&context, &kernel(&header, "out[0] = a[0];"), "mine (header):11:");
    }
}

#[test]
fn whole_variables_and_copies_pass() {
    for context in contexts() {
        for (body, right) in [
            ("var t = array<f32, 3>(1.0, a[i], 3.0); out[i] = whole(&t);", [2.0, 3.0, 4.0, 5.0]),
            ("mine[2] = a[i]; out[i] = own(&mine) + mine[2];", [4.0, 6.0, 8.0, 10.0]),
            (
                "var t = array<f32, 3>(1.0, a[i], 3.0); var c = t[1]; f(&c); t[1] = c; out[i] = \
                 t[1];",
                [2.0, 3.0, 4.0, 5.0],
            ),
            (
                "var t = array<f32, 3>(1.0, a[i], 3.0); let p = &t[1]; out[i] = *p;",
                [1.0, 2.0, 3.0, 4.0],
            ),
        ] {
            let kernel = kernel(HEADER, &format!("let i = global_id.x; {body}"));
            let out = kernel.run(&call(&context)).unwrap_or_else(|error| panic!("{body}: {error}"));
            assert_eq!(out[0].read_blocking::<f32>().unwrap(), right, "{body} on {context:?}");
        }
    }
}
