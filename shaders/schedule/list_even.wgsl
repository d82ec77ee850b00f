// Products of a list that have as many tiles each as the largest would have.
// needs: divided given
// provides: product_of

// The product of a workgroup, and which of its tiles the workgroup has; none beyond its last.
fn product_of(id: u32) -> vec2<u32> {
    return divided(id, given.tiles_m * given.tiles_n);
}
