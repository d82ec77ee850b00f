// The bits of elements that another loader gives as numbers.
// needs: params x_load x_load4
// provides: X_FACTOR x_bits x_bits4

// Whether the matrix may have a factor, which is params.alpha.
const X_FACTOR: bool = false; //param

fn x_bits(i: u32) -> u32 {
    if X_FACTOR {
        return bitcast<u32>(params.alpha * x_load(i));
    }
    return bitcast<u32>(x_load(i));
}

fn x_bits4(i: u32) -> vec4<u32> {
    if X_FACTOR {
        return bitcast<vec4<u32>>(params.alpha * x_load4(i));
    }
    return bitcast<vec4<u32>>(x_load4(i));
}
