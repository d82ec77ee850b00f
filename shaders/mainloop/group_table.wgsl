// Pass before a mainloop with many groups. It makes a table for a schedule to search (search.wgsl):
// where the rows of each group end among this pass's rows, and where its tiles of BM rows end. One
// workgroup takes THREADS groups at a time and carries its counts on to the next. Groups before
// this pass's have no tiles. Behind the groups the table has the number of workgroups along x, y
// and z that the mainloop needs, whose grid is params.grid_x wide.
// needs: columns_of params rows_of
// provides: BM FOLLOW THREADS group_table main scanned scans

const BM: u32 = 8u; //param
// Whether the rows of groups follow one another.
const FOLLOW: bool = true; //param
const THREADS: u32 = 256u; //param

@group(0) @binding(10) var<storage, read_write> group_table: array<vec2<u32>>;

// For each invocation, the largest end (x) and the sum of tiles (y) up to it.
var<workgroup> scans: array<u32, THREADS>;

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
        var row_end = 0u;
        var columns = 0u;
        if group < groups {
            row_end = rows_of(group);
            columns = columns_of(group);
        }
        var row = 0u;
        if FOLLOW {
            // An end below the one before it counts as that one.
            row_end = max(end, scanned(row_end, thread, false));
            row = max(end, select(0u, scans[max(thread, 1u) - 1u], thread > 0u));
            end = max(end, scans[THREADS - 1u]);
            workgroupBarrier();
        }
        let rows = (row_end - row + BM - 1u) / BM;
        let count = select(0u, rows * columns, group >= params.first_group);
        let tile_end = tiles + scanned(count, thread, true);
        tiles += scans[THREADS - 1u];
        workgroupBarrier();
        if group < groups {
            group_table[group] = vec2<u32>(row_end, tile_end);
        }
    }
    if thread == 0u {
        let all = tiles * params.tiles_n * params.splits;
        let y = all / params.grid_x + select(0u, 1u, all % params.grid_x > 0u);
        group_table[groups] = vec2<u32>(min(all, params.grid_x), y);
        group_table[groups + 1u] = vec2<u32>(1u, 0u);
    }
}
