// A table in workgroup memory has the numbers of codes of 4 bits. It has 32 equal columns.
// Neighbouring invocations read different columns, because these lie in different banks.
// needs: x_listed
// offers: X_COLUMNS x_column x_look_up x_prepare x_table

const X_COLUMNS: u32 = 32u;

var<workgroup> x_table: array<f32, 16u * X_COLUMNS>;
var<private> x_column: u32;

// Fills the table. All invocations of the workgroup must call it together.
fn x_prepare(thread: u32, threads: u32) {
    x_column = thread % X_COLUMNS;
    for (var i = thread; i < 16u * X_COLUMNS; i += threads) {
        x_table[i] = x_listed(i / X_COLUMNS);
    }
    workgroupBarrier();
}

// The numbers of the codes in the lowest four bits of each byte.
fn x_look_up(word: u32) -> vec4<f32> {
    let places =
        ((vec4<u32>(word) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(15u)) * X_COLUMNS + x_column;
    return vec4<f32>(x_table[places.x], x_table[places.y], x_table[places.z], x_table[places.w]);
}
