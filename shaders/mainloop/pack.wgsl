// Pass before a mainloop of matrix units: copies an operand into lines of whole vectors and whole steps along K, zeros at their ends. Here params.m is
// the operand's extent along the axis that is not K, c_ld and c_batch are the strides of the copy, and c_words counts its vectors of four.

const THREADS: u32 = 64u; //param

@group(0) @binding(10) var<storage, read_write> packed: array<vec4<Element>>;

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let quad = linear_id(workgroup) * THREADS + thread;
    if quad >= params.c_words {
        return;
    }
    let base = x_base(quad * 4u / params.c_batch);
    let line = quad * 4u % params.c_batch / params.c_ld;
    let first = quad * 4u % params.c_ld;
    var elements = vec4<f32>();
    for (var i = 0u; i < 4u; i += 1u) { //unroll
        let x = select(first + i, line, X_K_CONTIGUOUS);
        let k = select(line, first + i, X_K_CONTIGUOUS);
        if x < params.m && k < params.k {
            elements[i] = x_at(base, x, k);
        }
    }
    packed[quad] = vec4<Element>(elements);
}
