// Pass before a mainloop of matrix units: copies an operand into lines of whole vectors and whole
// steps along K, with zeros at their ends, 16 bytes per invocation. Lines keep their order. Here
// params.m is the operand's extent along the axis that is not K, c_ld and c_batch are the strides
// of the copy, and tiles_m and tiles_n count tiles of LINES × VECTORS in an entry of the copy.
// needs: X_K_CONTIGUOUS linear_id params row_end x_apart x_at x_base x_words_masked
// provides: LINES VECTOR VECTORS main packed

const LINES: u32 = 4u; //param
const VECTORS: u32 = 16u; //param
// Elements in 16 bytes.
const VECTOR: u32 = 8u; //param

@group(0) @binding(10) var<storage, read_write> packed: array<vec4<u32>>;

@compute @workgroup_size(LINES * VECTORS)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let tile = linear_id(workgroup);
    let row = tile / params.tiles_n;
    let entry = row / params.tiles_m;
    let line = row % params.tiles_m * LINES + thread / VECTORS;
    let at = (tile % params.tiles_n * VECTORS + thread % VECTORS) * VECTOR;
    if entry >= params.entries || line * params.c_ld >= params.c_batch || at >= params.c_ld {
        return;
    }
    if select(at, line, X_K_CONTIGUOUS) >= row_end(entry) {
        return;
    }
    let lines = select(params.k, params.m, X_K_CONTIGUOUS);
    let length = select(params.m, params.k, X_K_CONTIGUOUS);
    var words = vec4<u32>();
    if line < lines && at < length {
        words = x_words_masked(x_base(entry) + line * params.x_ld + at, length - at);
    }
    let place = x_at(line, at, x_apart(params.m, params.c_ld));
    packed[(entry * params.c_batch + place) / VECTOR] = words;
}
