// Mainloop for few rows, or few columns, against an operand that is stored across K. Its time is
// that of reading that operand once. A lane has eight neighbouring lines of it. Eight lanes lie
// side by side, all others along K; their sums meet first within simdgroups, then in threadgroup
// memory.
// needs: A_ARGUMENTS A_OPERAND A_Operand B_ARGUMENTS B_OPERAND B_Operand END END_ARGUMENTS Eight
//        INLINE KERNEL SCHEDULE_VALUES SHARED SIMD Tile UNROLL lane linear_id params schedule
//        simdgroup thread_index threadgroup_at
// provides: ABREAST AHEAD STRIPES THREADS WIDTH accumulate step
// constants: FEW MANY_ROWS SIMDGROUPS

// WIDTH and FEW are the tile: along N and M, or along M and N if MANY_ROWS.
constexpr constant uint ABREAST = 8;
constexpr constant uint WIDTH = ABREAST * 8;
constexpr constant uint STRIPES = SIMD / ABREAST * SIMDGROUPS;
// Steps along K that are loaded before the first is used.
constexpr constant uint AHEAD = 4;
constexpr constant uint THREADS = SIMD * SIMDGROUPS;

// A lane's share of AHEAD steps along K, all of which exist if `Whole` says so: eight lines from
// `line` on, `n` of which exist, with the others from `other` on. Beyond `other_end` the last is
// read again, and its sums are dropped.
template <bool Whole, typename Many, typename Few>
INLINE void step(thread const Many &many, uint line, uint n, thread const Few &few, uint other,
    uint other_end, uint k, uint k_end, thread float (&sums)[FEW][8]) {
    Eight eights[AHEAD];
    UNROLL
    for (uint s = 0; s < AHEAD; s += 1) {
        const uint at = k + s * STRIPES;
        eights[s] = many.across(line, at, Whole ? 8 : at < k_end ? n : 0);
    }
    UNROLL
    for (uint s = 0; s < AHEAD; s += 1) {
        const uint at = k + s * STRIPES;
        UNROLL
        for (uint j = 0; j < FEW; j += 1) {
            // Beyond K both factors are 0: an infinity in one would make NaN of 0 in the other.
            const float x =
                Whole || at < k_end ? few.load(min(other + j, other_end - 1), at) : 0.0f;
            UNROLL
            for (uint i = 0; i < 8; i += 1) {
                sums[j][i] = fma(eights[s].at[i], x, sums[j][i]);
            }
        }
    }
}

// A lane's share of all sums.
template <typename Many, typename Few>
INLINE void accumulate(thread const Many &many, uint line, uint n, thread const Few &few,
    uint other, uint other_end, uint k, uint k_end, thread float (&sums)[FEW][8]) {
    if (n == 8) {
        for (; k + (AHEAD - 1) * STRIPES < k_end; k += STRIPES * AHEAD) {
            step<true>(many, line, n, few, other, other_end, k, k_end, sums);
        }
    }
    for (; k < k_end; k += STRIPES * AHEAD) {
        step<false>(many, line, n, few, other, other_end, k, k_end, sums);
    }
}

KERNEL(A_ARGUMENTS B_ARGUMENTS END_ARGUMENTS) {
    SHARED(float, stripes, SIMDGROUPS * FEW * WIDTH);
    const Tile tile = schedule(linear_id(threadgroup_at, params), params SCHEDULE_VALUES);
    if (!tile.live) {
        return;
    }
    const A_Operand a = A_OPERAND(tile.batch);
    const B_Operand b = B_OPERAND(tile.group);
    const uint own = lane % ABREAST * 8;
    const uint k = tile.k + simdgroup * (SIMD / ABREAST) + lane / ABREAST;
    float sums[FEW][8] = {};
    if (MANY_ROWS) {
        const uint line = tile.row + own;
        accumulate(a, line, min(max(tile.row_end, line) - line, 8u), b, tile.col, params.n, k,
            tile.k_end, sums);
    } else {
        const uint line = tile.col + own;
        accumulate(b, line, min(max(params.n, line) - line, 8u), a, tile.row, tile.row_end, k,
            tile.k_end, sums);
    }
    UNROLL
    for (uint j = 0; j < FEW; j += 1) {
        UNROLL
        for (uint i = 0; i < 8; i += 1) {
            float sum = sums[j][i];
            for (ushort apart = ABREAST; apart < SIMD; apart *= 2) {
                sum += simd_shuffle_xor(sum, apart);
            }
            if (lane < ABREAST) {
                stripes[(simdgroup * FEW + j) * WIDTH + own + i] = sum;
            }
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const auto end = END;
    for (uint at = thread_index; at < FEW * WIDTH; at += THREADS) {
        float sum = 0;
        for (uint stripe = 0; stripe < SIMDGROUPS; stripe += 1) {
            sum += stripes[stripe * FEW * WIDTH + at];
        }
        const uint many = at % WIDTH;
        const uint few = at / WIDTH;
        end.store(tile, tile.row + (MANY_ROWS ? many : few), tile.col + (MANY_ROWS ? few : many),
            sum);
    }
}
