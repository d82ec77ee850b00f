// Every entry has its range of K, with the ranges' ends on the device. An end below its start or
// beyond K is clamped, so that no element outside A and B is touched whatever the buffer holds.
//
// A pass may compute only a range of the entries. Its entries count from the start of the range,
// the ends in the buffer from that of the whole.
// needs: params
// provides: k_ends k_range

@group(0) @binding(6) var<storage, read> k_ends: array<u32>;

fn k_range(entry: u32, split: u32) -> vec2<u32> {
    var range = vec2<u32>();
    for (var group = 0u; group <= params.first_group + entry; group += 1u) {
        range = vec2<u32>(range.y, clamp(k_ends[params.row_offset + group], range.y, params.k));
    }
    return range;
}
