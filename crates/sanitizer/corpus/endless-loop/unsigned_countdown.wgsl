//@ max-iterations: 1000
//@ bind 0: u32 random 16
//@ bind 1: u32 zero 1
// Evaluates a polynomial, from the highest coefficient down.
@group(0) @binding(0) var<storage, read> coefficients: array<u32>;
@group(0) @binding(1) var<storage, read_write> value: array<u32>;

@compute @workgroup_size(1)
fn main() {
    var result = 0u;
    for (var i = 15u; i >= 0u; i--) { //~ endless-loop
        result = result * 3u + coefficients[min(i, 15u)];
    }
    value[0] = result;
}
