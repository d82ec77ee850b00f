// The storage lines of an operand that is stored along K: row x of A, or column x of B, is line x.
// Every mainloop asks here, and only for rows and columns that exist.
// needs: nothing
// offers: x_line x_summed

fn x_line(x: u32) -> u32 {
    return x;
}

// The sums of row x, for the end of a mainloop: gathered.wgsl leaves some out.
fn x_summed(x: u32, sums: vec4<f32>) -> vec4<f32> {
    return sums;
}
