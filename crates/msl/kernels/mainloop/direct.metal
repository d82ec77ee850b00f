// Mainloop: a BM×BN tile of C per threadgroup, which is one simdgroup, as 8×8 matrices straight from device memory: no barriers between simdgroups, and
// caches large enough on Apple's GPUs from the third generation on. Matrices that reach over an edge, or whose elements are stored otherwise than they are
// multiplied, pass through threadgroup memory one by one.

constexpr constant uint MATRICES_M = BM / 8;
constexpr constant uint MATRICES_N = BN / 8;

using Staged = Common<A_Format::Element, B_Format::Element>::Type;

// A matrix as it lies in device memory, if it lies there.
template <typename T, uint Width>
inline bool loaded(thread simdgroup_matrix<T, 8, 8> &matrix, Dense<T, Width> format, uint i, uint ld, bool transposed) {
    simdgroup_load(matrix, format.data + i, ld, ulong2(0, 0), transposed);
    return true;
}

template <typename T, typename Format>
inline bool loaded(thread simdgroup_matrix<T, 8, 8> &, Format, uint, uint, bool) {
    return false;
}

// The matrix at (x, k) of an operand, with lines along K as its rows if `rows` says so. What lies at or beyond x_end or k_end is 0 and never read.
template <typename Side>
inline void load(thread simdgroup_matrix<Staged, 8, 8> &matrix, thread const Side &side, uint x, uint x_end, uint k, uint k_end, bool rows,
                 threadgroup Staged *corner, uint lane) {
    const bool whole = x + 8 <= x_end && k + 8 <= k_end;
    if (whole && loaded(matrix, side.format, side.index(x, k), side.ld, rows != Side::ALONG_K)) {
        return;
    }
    for (uint at = lane; at < 64; at += SIMD) {
        const uint at_x = x + at / 8;
        const uint at_k = k + at % 8;
        corner[at] = at_x < x_end && at_k < k_end ? Staged(side.load(at_x, at_k)) : Staged(0.0f);
    }
    simdgroup_barrier(mem_flags::mem_threadgroup);
    simdgroup_load(matrix, corner, 8, ulong2(0, 0), !rows);
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
    const A_Side a = A_SIDE(tile.batch);
    const B_Side b = B_SIDE(tile.group);

    simdgroup_float8x8 sums[MATRICES_M][MATRICES_N];
#pragma unroll
    for (uint i = 0; i < MATRICES_M; i += 1) {
#pragma unroll
        for (uint j = 0; j < MATRICES_N; j += 1) {
            sums[i][j] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
        }
    }
    for (uint k = tile.k; k < tile.k_end; k += 8) {
        simdgroup_matrix<Staged, 8, 8> rows[MATRICES_M];
        simdgroup_matrix<Staged, 8, 8> columns[MATRICES_N];
#pragma unroll
        for (uint i = 0; i < MATRICES_M; i += 1) {
            load(rows[i], a, tile.row + i * 8, tile.row_end, k, tile.k_end, true, corner, lane);
        }
#pragma unroll
        for (uint j = 0; j < MATRICES_N; j += 1) {
            load(columns[j], b, tile.col + j * 8, params.n, k, tile.k_end, false, corner, lane);
        }
#pragma unroll
        for (uint i = 0; i < MATRICES_M; i += 1) {
#pragma unroll
            for (uint j = 0; j < MATRICES_N; j += 1) {
                simdgroup_multiply_accumulate(sums[i][j], rows[i], columns[j], sums[i][j]);
            }
        }
    }

    const auto end = END;
#pragma unroll
    for (uint i = 0; i < MATRICES_M; i += 1) {
#pragma unroll
        for (uint j = 0; j < MATRICES_N; j += 1) {
            simdgroup_store(sums[i][j], shown + j * 8, BN);
        }
        simdgroup_barrier(mem_flags::mem_threadgroup);
        for (uint at = lane; at < 8 * BN; at += SIMD) {
            end.store(tile, tile.row + i * 8 + at / BN, tile.col + at % BN, shown[at]);
        }
        simdgroup_barrier(mem_flags::mem_threadgroup);
    }
}
