// Every entry has its range of K, as in ragged_k.wgsl. For many ranges, a pass before has made a
// table of their ends (mainloop/group_table.wgsl), clamped already. So no workgroup walks over
// them.
// needs: group_table params
// provides: k_range

fn k_range(entry: u32, split: u32) -> vec2<u32> {
    let group = params.first_group + entry;
    var start = 0u;
    if group > 0u {
        start = group_table[group - 1u].x;
    }
    return vec2<u32>(start, group_table[group].x);
}
