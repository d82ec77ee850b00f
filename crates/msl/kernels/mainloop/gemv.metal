// Mainloop for few rows, or few columns, against an operand that is stored along K: bound by reading that operand once. Each simdgroup has LINES of its lines
// and all FEW of the others; its lanes lie along K, eight elements each, and their sums meet in simd_sum.
// needs: A_ARGUMENTS A_SIDE A_Side B_ARGUMENTS B_SIDE B_Side END END_ARGUMENTS KERNEL
//        SCHEDULE_VALUES SIMD Tile lane linear_id params schedule simdgroup threadgroup_at
// provides: Range SUMS multiply
// constants: FEW LINES MANY_ROWS

// LINES × SIMDGROUPS and FEW are the tile: along N and M, or along M and N where MANY_ROWS says so.
constexpr constant uint SUMS = LINES * FEW;
static_assert(SUMS <= SIMD, "a lane for each sum");

// A range of the axis that is not K.
struct Range {
    uint first;
    uint end;
};

// A lane's share of the sums of `few.first` and so on with `many.first` and so on. Beyond an end the last line is read again, and its sums are dropped.
template <typename Many, typename Few>
inline void multiply(thread const Many &many, Range lines, thread const Few &few, Range others, uint k, uint k_end, thread float (&sums)[SUMS]) {
    for (; k < k_end; k += SIMD * 8) {
        const uint n = min(k_end - k, 8u);
        typename Many::Format::Raw raw[LINES];
#pragma unroll
        for (uint i = 0; i < LINES; i += 1) {
            raw[i] = many.raw(min(lines.first + i, lines.end - 1), k, n);
        }
#pragma unroll
        for (uint j = 0; j < FEW; j += 1) {
            const auto spread = Many::Format::spread(few.along_k(min(others.first + j, others.end - 1), k, n));
#pragma unroll
            for (uint i = 0; i < LINES; i += 1) {
                sums[i * FEW + j] += Many::Format::dot(raw[i], spread);
            }
        }
    }
}

KERNEL(A_ARGUMENTS B_ARGUMENTS END_ARGUMENTS) {
    const Tile tile = schedule(linear_id(threadgroup_at, params), params SCHEDULE_VALUES);
    if (!tile.live) {
        return;
    }
    const A_Side a = A_SIDE(tile.batch);
    const B_Side b = B_SIDE(tile.group);
    const uint own = simdgroup * LINES;
    const uint k = tile.k + lane * 8;
    float sums[SUMS] = {};
    if (MANY_ROWS) {
        multiply(a, Range{tile.row + own, tile.row_end}, b, Range{tile.col, params.n}, k, tile.k_end, sums);
    } else {
        multiply(b, Range{tile.col + own, params.n}, a, Range{tile.row, tile.row_end}, k, tile.k_end, sums);
    }
    // Each lane ends one of the sums.
    float sum = 0;
#pragma unroll
    for (uint i = 0; i < SUMS; i += 1) {
        const float all = simd_sum(sums[i]);
        sum = lane == i ? all : sum;
    }
    if (lane < SUMS) {
        const uint many = own + lane / FEW;
        const uint few = lane % FEW;
        const auto end = END;
        end.store(tile, tile.row + (MANY_ROWS ? many : few), tile.col + (MANY_ROWS ? few : many), sum);
    }
}
