//! Texts that do not compile, and texts that `lint` complains of.

use crate::common::text;
use tilewise_tests::harness::{Kernel, Mode, available, lint};

const ARGUMENTS: &str = "device float *x [[buffer(0)]], device const half *h [[buffer(1)]], device \
                         bfloat *b [[buffer(2)]], constant uint &n [[buffer(3)]]";

fn refused(body: &str, words: &str) {
    if available(Mode::Plain) {
        let error = Kernel::compile(&text(ARGUMENTS, body), Mode::Plain).expect_err(body);
        assert!(error.contains(words), "{body}: no `{words}` in {error}");
    }
}

fn accepted(body: &str) {
    if available(Mode::Plain) {
        Kernel::compile(&text(ARGUMENTS, body), Mode::Plain)
            .unwrap_or_else(|it| panic!("{body}: {it}"));
    }
}

#[test]
fn address_spaces_are_distinct() {
    refused("threadgroup float *p = x;", "kernel.metal:6");
    refused("device float *p = &x[0]; SHARED(float, s, 4); p = s;", "incompatible");
    refused("float y = 1; device float *p = &y; p[0] = 1;", "cannot initialize");
    refused("device const uint &m = n; x[0] = m;", "address space");
    refused(
        "device float *p = reinterpret_cast<device float *>(h); p[0] = 1;",
        "casts away qualifiers",
    );
    refused("n = 3;", "const");
    refused(
        "SHARED(half, s, 64); simdgroup_half8x8 m; simdgroup_load(m, &s);",
        "no matching function",
    );
    accepted(
        "SHARED(float, s, 4); threadgroup float *p = s; device float *q = x + 1; thread float y = \
         2; thread float &r = y; q[0] = r + p[0];",
    );
}

#[test]
fn conversions_to_small_floats_are_named() {
    refused("half y = x[0];", "no viable conversion");
    refused("half y = h[0] * 2.0f;", "no viable conversion");
    refused("half y = h[0]; y += 1.0f;", "no viable overloaded");
    refused("half y = b[0];", "no viable conversion");
    refused("b[0] = h[0];", "no viable overloaded");
    refused("x[0] = h[0] * b[0];", "deleted");
    refused("half4 y = float4(1);", "no viable conversion");
    refused("double y = 1; x[0] = y;", "double");
    accepted(
        "half y = half(x[0]); y += h[1] * y; float z = y * 2.0f + 1.0; b[0] = bfloat(h[0]); x[0] = \
         z; half4 w = half4(float4(z)); x[1] = w.x;",
    );
}

#[test]
fn what_metal_lacks() {
    refused("simdgroup_float8x8 m(0); x[0] = m.thread_elements()[0];", "thread_elements");
    refused("simdgroup_float8x8 m(0); x[0] = m.elements[0];", "private");
    refused("x[0] = simd_total(x[1]);", "simd_total");
    refused("float8 y = 0;", "float8");
    refused("x[0] = sqrtf(2.0f);", "sqrtf");
    refused("x[0] = expf(2.0f);", "expf");
    refused("memcpy(x, x, 4);", "memcpy");
    refused("simdgroup_matrix<int, 8, 8> m;", "floating point alone");
    refused("simdgroup_matrix<float, 4, 4> m;", "8 by 8");
    refused(
        "simdgroup_float8x8 m(0); simdgroup_load(m, x, 8, ulong2(0, 0), x[0] > 0);",
        "transpose must be a constant",
    );
    refused(
        "simdgroup_half8x8 s(half(0)); simdgroup_float8x8 m(0); simdgroup_multiply(s, m, m);",
        "operands",
    );
    refused("uint unused = n;", "unused");
    refused("if constexpr (true) { x[0] = 1; }", "if");
    refused("int *p = new int; x[0] = *p;", "new");
    accepted("int local = 1, global = 2; x[0] = local + global + __METAL_VERSION__;");
}

#[test]
fn headers_are_asked_for() {
    if available(Mode::Plain) {
        let text = "#include <metal_stdlib>\n\
                    using namespace metal;\n\
                    kernel void f(device float *x [[buffer(0)]]) { x[0] = simd_sum(1.0f); }";
        assert!(Kernel::compile(text, Mode::Plain).unwrap_err().contains("simd_sum"));
        let text = "#include <cstdint>\nkernel void f(device float *x [[buffer(0)]]) { x[0] = 1; }";
        assert!(Kernel::compile(text, Mode::Plain).unwrap_err().contains("cstdint"));
    }
}

#[test]
fn signatures_are_whole() {
    let error = |parameters: &str| {
        let text = format!(
            "#include <metal_stdlib>\nusing namespace metal;\nkernel void f({parameters}) {{}}"
        );
        Kernel::compile(&text, Mode::Plain).expect_err(parameters)
    };
    if available(Mode::Plain) {
        assert!(error("device float *x").contains("no attribute"));
        assert!(error("device float *x [[buffer(N)]]").contains("a slot is a number"));
        assert!(
            error("device float *x [[buffer(1)]], device float *y [[buffer(1)]]")
                .contains("slot is taken")
        );
        assert!(error("float *x [[buffer(1)]]").contains("`device` or in `constant`"));
        assert!(error("uint x [[thread_index_in_simdgroups]]").contains("not known"));
        assert!(error("uint3 x [[thread_index_in_simdgroup]]").contains("does not have"));
        assert!(error("float x [[thread_index_in_simdgroup]]").contains("does not have"));
        assert!(
            Kernel::compile("void f() {}", Mode::Plain).unwrap_err().contains("no entry point")
        );
    }
}

fn complaints(text: &str) -> Vec<String> {
    lint(&format!("using namespace metal; {text}"))
}

#[test]
fn types_of_the_namespace() {
    let early = |text: &str| {
        lint(text).iter().any(|it| it.contains("no `using namespace metal` stands before"))
    };
    assert!(early("constant uint x = 3;") && early("uint4 f();\nusing namespace metal;"));
    assert!(!early(
        "constant unsigned int x = 3; metal::uint y(); using namespace metal; uint z();"
    ));
}

#[test]
fn variables_without_constant() {
    for (text, name) in [("float q = 1;", "float q"), ("constexpr uint W = 3;", "constexpr uint W")]
    {
        assert_eq!(complaints(text), [format!("line 1: {name} is a variable without `constant`")]);
    }
    assert_eq!(complaints("namespace n { float q = 1; }").len(), 1);
    for fine in [
        "constexpr constant uint W = 3;",
        "using T = float;",
        "template <uint N> struct S { static constexpr constant uint M = N; };\nuint f(uint a) { \
         uint b = a; return b; }",
        "inline uint f(uint a = 3) { return a; }",
    ] {
        assert_eq!(complaints(fine), Vec::<String>::new(), "{fine}");
    }
}

#[test]
fn pointers_without_an_address_space() {
    assert_eq!(
        complaints("float f(float *x) { return *x; }"),
        ["line 1: `float *x`: no address space"]
    );
    assert_eq!(
        complaints("\n\nvoid f(device float *x,\n  half4 &y);"),
        ["line 4: `half4 &y`: no address space"]
    );
    assert_eq!(
        complaints("void f() {\n  const uint *p = 0;\n}"),
        ["line 2: `const uint *p`: no address space"]
    );
    assert_eq!(
        complaints("void f(vec<half, 4> &v, thread vec<half, 4> &w);"),
        ["line 1: `vec<half, 4> &v`: no address space"]
    );
    assert_eq!(
        complaints("template <class T> void f(T &v);"),
        ["line 1: `T &v`: no address space"]
    );
    assert_eq!(complaints("void f(float (&x)[4]);"), ["line 1: `float (&x)`: no address space"]);
    for fine in [
        "void f(device const float *x, constant Params &p, threadgroup half (&t)[4], thread float4 \
         &y, const device uint *z);",
        "float f(uint a, uint b) { uint c = a * b; return (a & b) * c + a * (b & 3); }",
        "void f() { x[0] = float(a) * b; y = uint4(a) & c; if (a && b) { z = vec<half, 4>(h) * w; \
         } }",
        "// float *x\n/* half &y */ #define F \"float *z\"",
        "for (uint i = 0; i < n * m; i++) { total += i * stride; }",
        "threadgroup float (&name)[count] = *reinterpret_cast<threadgroup float (*)[count]>(p);",
        "auto y = *reinterpret_cast<device const float4 *>(x + 1);",
        "constant Params &params [[buffer(0)]], device const half *a_data [[buffer(A_SLOT)]]",
    ] {
        assert_eq!(complaints(fine), [""; 0], "{fine}");
    }
}

#[test]
fn words_that_metal_lacks() {
    let first = |text: &str| complaints(text).first().cloned().unwrap_or_default();
    for (text, word) in [
        ("void f() { double x; }", "double"),
        ("\nstruct A { virtual void f(); };", "virtual"),
        ("void f() { auto p = new int; }", "new"),
        ("void f() { goto end; }", "goto"),
        ("void f() { try { } catch (...) { } }", "try"),
        ("void f() { throw 1; }", "throw"),
        ("void f() { dynamic_cast<int>(1); }", "dynamic_cast"),
        ("void f() { std::max(1, 2); }", "std"),
        ("thread_local int x;", "thread_local"),
        ("void f() { typeid(int); }", "typeid"),
        ("void f() { int fragment = 1; }", "fragment"),
        ("void f() { long long x; }", "long"),
        ("void f() { ulong x = 1ULL; }", "1ULL"),
        ("void f() { __builtin_trap(); }", "__builtin_trap"),
    ] {
        assert!(first(text).contains(&format!("`{word}`")), "{text}: {}", first(text));
    }
    for (text, word) in [
        ("void f() { auto g = [&](int a) { return a; }; }", "lambda"),
        ("void f() { auto g = [](int a) { return a; }; }", "lambda"),
        ("void f() { auto g = [=] { return a; }; }", "lambda"),
        ("struct A : B { int x; };", "inheritance"),
        ("struct A final : public B { int x; };", "inheritance"),
        ("void f() {\n static int x; }", "line 2: `static` local"),
        (
            "[[max_total_threads_per_threadgroup(64)]] kernel void main(device float *x \
             [[buffer(0)]]) {}",
            "`main`",
        ),
        (
            "\nkernel void f(device float *x [[buffer(0)]]) {}",
            "line 2: a kernel without `max_total",
        ),
        (
            "[[max_total_threads_per_threadgroup(32)]] kernel void f(device float *x \
             [[buffer(0)]]) {}",
            "ask for 64",
        ),
        ("struct A { int x; int f() const { return x; } };", "a method that does not say `thread`"),
        ("void f() { threadgroup float x[4]; }", "threadgroup memory outside a kernel"),
        ("void f() {\n SHARED(float, x, 4); }", "line 2: threadgroup memory outside a kernel"),
        ("uint f(uint n) {\n return n ? f(n - 1) : 0; }", "line 2: `f` calls itself"),
        (
            "uint f(uint n);\nuint g(uint n) { return f(n); }\nuint f(uint n) {\n return g(n); }",
            "line 2: `g` calls itself",
        ),
    ] {
        assert!(first(text).contains(word), "{text}: {}", first(text));
    }
    for fine in [
        "struct A { int x; }; static float f(A a) { return a.x; }",
        "template <typename T, uint N> struct Tile { static constexpr constant uint SIZE = N; T \
         e[N]; };",
        "void f(device uint *x [[buffer(0)]], uint i [[thread_index_in_simdgroup]]) { x[i] = \
         y[x[i]] ? 1 : 2; }",
        "struct A { int x; static int g() { return 1; } int f() const thread { return x; } };",
        "[[max_total_threads_per_threadgroup(64)]] kernel void f(device float *x [[buffer(0)]]) { \
         SHARED(float, y, 4); }",
        "float f(float x) { return g(x); } float g(float x, float y) { return f(x); }",
        "float f(float x) { return x; } float g(float x) { return f(x); } float h(float x) { \
         return g(x) + f(x); }",
        "void f() { long x = 0xffl; ulong y = 12; }",
    ] {
        assert_eq!(complaints(fine), [""; 0], "{fine}");
    }
}
