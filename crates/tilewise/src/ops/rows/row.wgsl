// The header of texts in which `lanes` of a workgroup's SIZE invocations share a row. Neighbouring
// invocations belong to one row, or, if ACROSS, to neighbouring rows.
var<workgroup> parts: array<Part, SIZE>;

// The number of an invocation among the invocations of its row.
fn lane_of(index: u32, lanes: u32) -> u32 {
    return select(index % lanes, index / (SIZE / lanes), ACROSS);
}

// The number of an invocation's row in the workgroup.
fn row_of(index: u32, lanes: u32) -> u32 {
    return select(index / lanes, index % (SIZE / lanes), ACROSS);
}

// Joins the parts of all invocations of a row; each invocation gets the result.
fn whole(part: Part, index: u32, lanes: u32) -> Part {
    let lane = lane_of(index, lanes);
    let step = select(1u, SIZE / lanes, ACROSS);
    let first = index - lane * step;
    parts[index] = part;
    workgroupBarrier();
    for (var span = lanes; span > 1u; span /= 4u) {
        let share = max(span / 4u, 1u);
        if lane < share {
            var some = joined(parts[index], parts[index + share * step]);
            if span > 2u {
                let third = parts[index + 2u * share * step];
                some = joined(some, joined(third, parts[index + 3u * share * step]));
            }
            parts[index] = some;
        }
        workgroupBarrier();
    }
    let all = parts[first];
    workgroupBarrier();
    return all;
}
