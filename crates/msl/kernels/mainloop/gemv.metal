// Mainloop for few rows, or few columns, against an operand that is stored along K. Its time is
// that of reading that operand once. Each simdgroup has LINES lines of the operand and all FEW of
// the other. Its lanes lie along K, with a SPAN of elements each, and their sums meet in simd_sum.
// needs: A_ARGUMENTS A_Format A_OPERAND A_Operand B_ARGUMENTS B_Format B_OPERAND B_Operand END
//        END_ARGUMENTS INLINE KERNEL SCHEDULE_VALUES SIMD Tile UNROLL lane linear_id params
//        schedule simdgroup threadgroup_at
// provides: Range SUMS accumulate step
// constants: FEW LINES MANY_ROWS

// LINES × SIMDGROUPS and FEW are the tile: along N and M, or along M and N if MANY_ROWS.
constexpr constant uint SUMS = LINES * FEW;
static_assert(SUMS <= SIMD, "a lane for each sum");

// A range of the axis that is not K.
struct Range {
    uint first;
    uint end;
};

// A lane's share of one step: a SPAN of elements along K of every line, all of which exist if
// `Whole` says so. Beyond an end the last line is read again, and its sums are dropped.
template <bool Whole, typename Many, typename Few>
INLINE void step(thread const Many &many, Range lines, thread const Few &few, Range others, uint k,
    uint k_end, thread float (&sums)[SUMS]) {
    using Format = typename Many::Format;
    const uint n = Whole ? Format::SPAN : k_end - k;
    typename Format::Raw raw[LINES];
    UNROLL
    for (uint i = 0; i < LINES; i += 1) {
        raw[i] = many.raw(min(lines.first + i, lines.end - 1), k, n);
    }
    UNROLL
    for (uint from = 0; from < Format::SPAN; from += 8) {
        typename Format::Numbers numbers[LINES];
        UNROLL
        for (uint i = 0; i < LINES; i += 1) {
            numbers[i] = Format::numbers(raw[i], from);
        }
        UNROLL
        for (uint j = 0; j < FEW; j += 1) {
            const auto spread = Format::spread(few.along_k(min(others.first + j, others.end - 1),
                k + from, n - from));
            UNROLL
            for (uint i = 0; i < LINES; i += 1) {
                sums[i * FEW + j] += Format::dot(numbers[i], spread);
            }
        }
    }
}

// A lane's share of the sums of `others.first` and so on with `lines.first` and so on.
template <typename Many, typename Few>
INLINE void accumulate(thread const Many &many, Range lines, thread const Few &few, Range others,
    uint k, uint k_end, thread float (&sums)[SUMS]) {
    const uint span = Many::Format::SPAN;
    for (; k + span <= k_end; k += SIMD * span) {
        step<true>(many, lines, few, others, k, k_end, sums);
    }
    if (k < k_end) {
        step<false>(many, lines, few, others, k, k_end, sums);
    }
}

KERNEL(A_ARGUMENTS B_ARGUMENTS END_ARGUMENTS) {
    const Tile tile = schedule(linear_id(threadgroup_at, params), params SCHEDULE_VALUES);
    if (!tile.live) {
        return;
    }
    const A_Operand a = A_OPERAND(tile.batch);
    const B_Operand b = B_OPERAND(tile.group);
    const uint own = simdgroup * LINES;
    float sums[SUMS] = {};
    if (MANY_ROWS) {
        accumulate(a, Range{tile.row + own, tile.row_end}, b, Range{tile.col, params.n},
            tile.k + lane * A_Format::SPAN, tile.k_end, sums);
    } else {
        accumulate(b, Range{tile.col + own, params.n}, a, Range{tile.row, tile.row_end},
            tile.k + lane * B_Format::SPAN, tile.k_end, sums);
    }
    // Each lane ends one of the sums.
    float sum = 0;
    UNROLL
    for (uint i = 0; i < SUMS; i += 1) {
        const float all = simd_sum(sums[i]);
        sum = lane == i ? all : sum;
    }
    if (lane < SUMS) {
        const uint many = own + lane / FEW;
        const uint few = lane % FEW;
        const auto end = END;
        end.store(tile, tile.row + (MANY_ROWS ? many : few), tile.col + (MANY_ROWS ? few : many),
            sum);
    }
}
