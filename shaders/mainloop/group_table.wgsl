// Pass before a mainloop with many groups: where the rows of each group end among this pass's rows,
// and where its tiles of BM rows end, for a schedule to search (ragged_table.wgsl). One workgroup
// takes THREADS groups at a time and passes what it has counted on to the next. An end below the
// one before it, or beyond M, is clamped. Groups before this pass's have no tiles. Of ranges of K,
// params.m is K, and the tiles are of no use.
// needs: params
// provides: BM THREADS end_of group_ends group_table main scanned scans

const BM: u32 = 8u; //param
const THREADS: u32 = 256u; //param

@group(0) @binding(6) var<storage, read> group_ends: array<u32>;
@group(0) @binding(10) var<storage, read_write> group_table: array<vec2<u32>>;

// For each invocation, the largest end (x) and the sum of tiles (y) up to it.
var<workgroup> scans: array<u32, THREADS>;

// Where a group ends, if it begins at or before that.
fn end_of(group: u32) -> u32 {
    let own = group_ends[params.row_offset + group];
    return min(max(own, params.first_row) - params.first_row, params.m);
}

// The largest of the values of an invocation and all before it, or their sum.
fn scanned(value: u32, thread: u32, adds: bool) -> u32 {
    scans[thread] = value;
    var all = value;
    for (var reach = 1u; reach < THREADS; reach *= 2u) {
        workgroupBarrier();
        var other = 0u;
        if thread >= reach {
            other = scans[thread - reach];
        }
        all = select(max(all, other), all + other, adds);
        workgroupBarrier();
        scans[thread] = all;
    }
    workgroupBarrier();
    return all;
}

@compute @workgroup_size(THREADS)
fn main(@builtin(local_invocation_index) thread: u32) {
    let groups = params.first_group + params.entries;
    var end = 0u;
    var tiles = 0u;
    for (var first = 0u; first < groups; first += THREADS) {
        let group = first + thread;
        var own = 0u;
        if group < groups {
            own = end_of(group);
        }
        let row_end = max(end, scanned(own, thread, false));
        let row = max(end, select(0u, scans[max(thread, 1u) - 1u], thread > 0u));
        end = max(end, scans[THREADS - 1u]);
        workgroupBarrier();
        let count = select(0u, (row_end - row + BM - 1u) / BM, group >= params.first_group);
        let tile_end = tiles + scanned(count, thread, true);
        tiles += scans[THREADS - 1u];
        workgroupBarrier();
        if group < groups {
            group_table[group] = vec2<u32>(row_end, tile_end);
        }
    }
}
