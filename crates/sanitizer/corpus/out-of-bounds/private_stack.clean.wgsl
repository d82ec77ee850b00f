// Depth of nesting below the outermost brackets, with a stack of positions.
@group(0) @binding(0) var<storage, read> opens: array<u32>;
@group(0) @binding(1) var<storage, read_write> longest: array<u32>;
var<private> stack: array<u32, 5>;

@compute @workgroup_size(1)
fn main() {
    var depth = 0u;
    var best = 0u;
    for (var i = 0u; i < arrayLength(&opens); i++) {
        if (opens[i] == 1u) {
            stack[depth] = i;
            depth++;
        } else {
            depth--;
            best = max(best, depth);
        }
    }
    longest[0] = best;
}
