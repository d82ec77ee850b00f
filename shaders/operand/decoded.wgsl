// The bits of elements that another loader gives as numbers.
// needs: x_load x_load4
// provides: x_bits x_bits4

fn x_bits(i: u32) -> u32 {
    return bitcast<u32>(x_load(i));
}

fn x_bits4(i: u32) -> vec4<u32> {
    return bitcast<vec4<u32>>(x_load4(i));
}
