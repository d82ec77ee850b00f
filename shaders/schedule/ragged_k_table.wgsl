// Every entry has its range of K, as in ragged_k.wgsl, for many: a pass before has made a table of
// their ends (mainloop/group_table.wgsl), clamped already. So no workgroup walks over them.
// needs: params
// provides: k_range k_table

// Of each range, the end.
@group(0) @binding(6) var<storage, read> k_table: array<vec2<u32>>;

fn k_range(entry: u32, split: u32) -> vec2<u32> {
    let group = params.first_group + entry;
    var start = 0u;
    if group > 0u {
        start = k_table[group - 1u].x;
    }
    return vec2<u32>(start, k_table[group].x);
}
