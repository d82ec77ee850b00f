//@ bind 0: i64 values 100,-7,5000000000,12
//@ bind 1: i64 values 7,2,0,5
//@ bind 2: i64 out 4
// Quotients of wide integers.
@group(0) @binding(0) var<storage, read> dividends: array<i64>;
@group(0) @binding(1) var<storage, read> divisors: array<i64>;
@group(0) @binding(2) var<storage, read_write> quotients: array<i64>;

@compute @workgroup_size(4)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let divisor = divisors[id.x];
    quotients[id.x] = dividends[id.x] / divisor; //~ division-by-zero
}
