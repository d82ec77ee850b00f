// Quotients of wide integers.
@group(0) @binding(0) var<storage, read> dividends: array<i64>;
@group(0) @binding(1) var<storage, read> divisors: array<i64>;
@group(0) @binding(2) var<storage, read_write> quotients: array<i64>;

@compute @workgroup_size(4)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let divisor = max(divisors[id.x], 1li);
    quotients[id.x] = dividends[id.x] / divisor;
}
