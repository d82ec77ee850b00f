// The sums that mainloops left in scratch (partial.wgsl), for a finishing pass that stores C.
// needs: nothing
// offers: partial_sums

@group(0) @binding(9) var<storage, read> partial_sums: array<vec4<f32>>;
