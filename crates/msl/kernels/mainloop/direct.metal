// Mainloop: a threadgroup is one simdgroup and computes a BM×BN tile of C, as 8×8 matrices straight
// from device memory. It needs no barriers between simdgroups, and the caches of Apple's GPUs are
// large enough for it from the third generation on. A matrix that would reach over an edge of C
// begins farther inward, where all of it exists; sums that it shares with other tiles are dropped.
// A matrix that reaches beyond K, or whose elements are stored otherwise than they are multiplied,
// passes through threadgroup memory.
// needs: A_ARGUMENTS A_Format A_NEIGHBOURS A_OPERAND A_Operand B_ARGUMENTS B_Format B_NEIGHBOURS
//        B_OPERAND B_Operand Dense END END_ARGUMENTS INLINE KERNEL SCHEDULE_VALUES SHARED SIMD
//        Stored Tile UNROLL lane linear_id multiply params schedule threadgroup_at
// provides: Lies MATRICES_M MATRICES_N Matrix READY Staged inward load load_ready
// constants: BM BN STAGED

constexpr constant uint MATRICES_M = BM / 8;
constexpr constant uint MATRICES_N = BN / 8;

using Staged = Stored<STAGED>::Type;
using Matrix = simdgroup_matrix<Staged, 8, 8>;

// Whether an operand's elements lie in memory as they are multiplied.
template <typename Format>
struct Lies {
    static constexpr constant bool READY = false;
};
template <uint Width>
struct Lies<Dense<Staged, Width>> {
    static constexpr constant bool READY = true;
};
constexpr constant bool READY =
    Lies<A_Format>::READY && Lies<B_Format>::READY && A_NEIGHBOURS && B_NEIGHBOURS;

// The first of the eight lines of a matrix that would begin at x. At an edge it lies so far before
// x that all eight exist. If there are fewer than eight in all, the difference wraps, and x it is.
INLINE uint inward(uint x, uint x_end) {
    return min(x, x_end - 8);
}

// The matrix at (x, k), all of which lies ready. Lines along K are its rows if `Rows` says so.
template <bool Rows, typename Operand, uint Width>
INLINE void load_ready(thread Matrix &matrix, thread const Operand &operand,
    Dense<Staged, Width> format, uint x, uint k) {
    simdgroup_load(matrix, format.data + operand.index(x, k), operand.ld, ulong2(0, 0),
        Rows != Operand::ALONG_K);
}

template <bool Rows, typename Operand, typename Format>
INLINE void load_ready(thread Matrix &, thread const Operand &, Format, uint, uint) {
}

// The matrix that would begin at (x, k). What lies at or beyond x_end or k_end is 0 and never read;
// a matrix of nothing else waits for no lane.
template <bool Rows, typename Operand>
INLINE void load(thread Matrix &matrix, thread const Operand &operand, uint own_x, uint x_end,
    uint k, uint k_end, threadgroup Staged *corner, uint lane) {
    if (own_x >= x_end) {
        matrix = make_filled_simdgroup_matrix<Staged, 8, 8>(Staged(0.0f));
        return;
    }
    const uint x = inward(own_x, x_end);
    if (READY && x_end >= 8 && k + 8 <= k_end) {
        load_ready<Rows>(matrix, operand, operand.format, x, k);
        return;
    }
    for (uint at = lane; at < 64; at += SIMD) {
        const uint at_x = x + (Rows ? at / 8 : at % 8);
        const uint at_k = k + (Rows ? at % 8 : at / 8);
        corner[at] = at_x < x_end && at_k < k_end ? Staged(operand.load(at_x, at_k)) : Staged(0.0f);
    }
    simdgroup_barrier(mem_flags::mem_threadgroup);
    simdgroup_load(matrix, corner, 8);
    simdgroup_barrier(mem_flags::mem_threadgroup);
}

KERNEL(A_ARGUMENTS B_ARGUMENTS END_ARGUMENTS) {
    SHARED(Staged, corner, 64);
    // Eight rows of sums: matrices give no access to their elements.
    SHARED(float, shown, 8 * BN);
    const Tile tile = schedule(linear_id(threadgroup_at, params), params SCHEDULE_VALUES);
    if (!tile.live) {
        return;
    }
    const A_Operand a = A_OPERAND(tile.batch);
    const B_Operand b = B_OPERAND(tile.group);

    simdgroup_float8x8 sums[MATRICES_M][MATRICES_N];
    Matrix rows[MATRICES_M];
    Matrix columns[MATRICES_N];
    UNROLL
    for (uint i = 0; i < MATRICES_M; i += 1) {
        UNROLL
        for (uint j = 0; j < MATRICES_N; j += 1) {
            sums[i][j] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
        }
    }
    uint k = tile.k;
    // This loop has no test in the way of a load, which would make each wait for the one before.
    if (READY && tile.row_end >= 8 && params.n >= 8) {
        for (; k + 8 <= tile.k_end; k += 8) {
            UNROLL
            for (uint i = 0; i < MATRICES_M; i += 1) {
                load_ready<true>(rows[i], a, a.format, inward(tile.row + i * 8, tile.row_end), k);
            }
            UNROLL
            for (uint j = 0; j < MATRICES_N; j += 1) {
                load_ready<false>(columns[j], b, b.format, inward(tile.col + j * 8, params.n), k);
            }
            multiply(sums, rows, columns);
        }
    }
    for (; k < tile.k_end; k += 8) {
        UNROLL
        for (uint i = 0; i < MATRICES_M; i += 1) {
            load<true>(rows[i], a, tile.row + i * 8, tile.row_end, k, tile.k_end, corner, lane);
        }
        UNROLL
        for (uint j = 0; j < MATRICES_N; j += 1) {
            load<false>(columns[j], b, tile.col + j * 8, params.n, k, tile.k_end, corner, lane);
        }
        multiply(sums, rows, columns);
    }

    const auto end = END;
    UNROLL
    for (uint i = 0; i < MATRICES_M; i += 1) {
        UNROLL
        for (uint j = 0; j < MATRICES_N; j += 1) {
            simdgroup_store(sums[i][j], shown + j * 8, BN);
        }
        simdgroup_barrier(mem_flags::mem_threadgroup);
        // Each sum is stored once: those before a matrix's own place are another matrix's.
        const uint own_row = tile.row + i * 8;
        for (uint at = lane; at < 8 * BN; at += SIMD) {
            const uint own_col = tile.col + at % BN / 8 * 8;
            const uint row = inward(own_row, tile.row_end) + at / BN;
            const uint col = inward(own_col, params.n) + at % 8;
            if (row >= own_row && col >= own_col) {
                end.store(tile, row, col, shown[at]);
            }
        }
        simdgroup_barrier(mem_flags::mem_threadgroup);
    }
}
