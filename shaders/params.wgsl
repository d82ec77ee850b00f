// The numbers of a pass. Their struct comes from crates/core/src/params.rs and stands before all
// files.
// needs: Params
// offers: linear_id params

@group(0) @binding(0) var<uniform> params: Params;

// Grids are linearised, because one dimension ends at 65,535 workgroups.
fn linear_id(workgroup: vec3<u32>) -> u32 {
    return workgroup.y * params.grid_x + workgroup.x;
}
