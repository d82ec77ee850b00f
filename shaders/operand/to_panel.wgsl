// Elements for a matrix unit of f16, by a loader of eights: each number is rounded to f16 on its
// way into workgroup memory.
// needs: X_Eight x_load8 x_widen8
// provides: X_SPAN X_Unit x_elements x_words

const X_SPAN: u32 = 8u;

alias X_Unit = X_Eight;

fn x_words(i: u32) -> X_Unit {
    return x_load8(i, 8u);
}

// The first or the second four elements of eight.
fn x_elements(unit: X_Unit, part: u32) -> vec4<f16> {
    let eight = x_widen8(unit);
    return vec4<f16>(select(eight[0], eight[1], part == 1u));
}
