// Evaluates a polynomial, from the highest coefficient down.
@group(0) @binding(0) var<storage, read> coefficients: array<u32>;
@group(0) @binding(1) var<storage, read_write> value: array<u32>;

@compute @workgroup_size(1)
fn main() {
    var result = 0u;
    for (var i = 15u; i < 16u; i--) {
        result = result * 3u + coefficients[min(i, 15u)];
    }
    value[0] = result;
}
