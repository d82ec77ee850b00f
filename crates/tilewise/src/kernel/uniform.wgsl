// The numbers of a call.

struct tilewise_Call {
    grid: vec3<u32>,
FIELDS}
@group(0) @binding(0) var<uniform> tilewise_call: tilewise_Call;
