// A tiled product of 64×64 matrices, as a kernel author would write it first: loads, barriers, an
// inner loop of multiply-adds.
const N: u32 = 64u;
const TILE: u32 = 16u;

@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read_write> c: array<f32>;

var<workgroup> a_tile: array<f32, TILE * TILE>;
var<workgroup> b_tile: array<f32, TILE * TILE>;

@compute @workgroup_size(TILE, TILE)
fn main(@builtin(global_invocation_id) id: vec3<u32>,
    @builtin(local_invocation_id) local: vec3<u32>) {
    let at = local.y * TILE + local.x;
    var sum = 0.0;
    for (var k = 0u; k < N; k += TILE) {
        a_tile[at] = a[id.y * N + k + local.x];
        b_tile[at] = b[(k + local.y) * N + id.x];
        workgroupBarrier();
        for (var i = 0u; i < TILE; i += 1u) {
            sum = fma(a_tile[local.y * TILE + i], b_tile[i * TILE + local.x], sum);
        }
        workgroupBarrier();
    }
    c[id.y * N + id.x] = sum;
}
