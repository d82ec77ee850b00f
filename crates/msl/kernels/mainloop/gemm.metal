// Mainloop: a BM×BN tile of C per threadgroup, and of it a subtile per simdgroup, as 8×8 matrices
// that the whole simdgroup holds. Slices of A and B, BK deep, pass through threadgroup memory;
// other threadgroups on the core hide the time of their loads.
// needs: A_ARGUMENTS A_OPERAND A_Operand B_ARGUMENTS B_OPERAND B_Operand END END_ARGUMENTS INLINE
//        KERNEL SCHEDULE_VALUES SHARED SIMD Stored Tile UNROLL lane linear_id multiply params
//        schedule simdgroup thread_index threadgroup_at
// provides: A_Panel B_Panel COLUMNS MATRICES_M MATRICES_N Panel SHARED_FLOATS SIMDGROUPS Staged
//        THREADS
// constants: BK BM BN SIMDGROUPS_M SIMDGROUPS_N STAGED

constexpr constant uint SIMDGROUPS = SIMDGROUPS_M * SIMDGROUPS_N;
constexpr constant uint THREADS = SIMDGROUPS * SIMD;
// A simdgroup's matrices along M and along N, and the columns that they are.
constexpr constant uint MATRICES_M = BM / SIMDGROUPS_M / 8;
constexpr constant uint MATRICES_N = BN / SIMDGROUPS_N / 8;
constexpr constant uint COLUMNS = MATRICES_N * 8;

// A slice of an operand in threadgroup memory, X_TILE long and BK deep. It keeps the direction of
// the storage: lines along K or along the tile. Lines begin 16 bytes farther apart than they are
// long, so that the rows of a matrix lie in different banks.

template <typename Operand, typename Staged, uint TILE>
struct Panel {
    static constexpr constant uint LINES = Operand::ALONG_K ? TILE : BK;
    static constexpr constant uint LENGTH = Operand::ALONG_K ? BK : TILE;
    static constexpr constant uint LD = LENGTH + 16 / sizeof(Staged);
    static constexpr constant uint SIZE = LINES * LD;
    // Elements that a thread moves at a time.
    static constexpr constant uint WIDTH = Operand::Format::WIDTH;
    static constexpr constant uint LOADS = LENGTH / WIDTH;

    // Fills the slice that starts at (x, k). Unless it is whole, elements at or beyond x_end or
    // k_end are 0 and never read.
    template <bool Whole>
    INLINE static void fill(threadgroup Staged *panel, thread const Operand &operand, uint x,
        uint x_end, uint k, uint k_end, uint thread_index) {
        UNROLL
        for (uint first = 0; first < LINES * LOADS; first += THREADS) {
            const uint load = first + thread_index;
            if (LINES * LOADS % THREADS == 0 || load < LINES * LOADS) {
                move<Whole>(panel, operand, x, x_end, k, k_end, load);
            }
        }
    }

    template <bool Whole>
    INLINE static void move(threadgroup Staged *panel, thread const Operand &operand, uint x,
        uint x_end, uint k, uint k_end, uint load) {
        const uint line = load / LOADS;
        const uint at = load % LOADS * WIDTH;
        const uint to_x = x + (Operand::ALONG_K ? line : at);
        const uint to_k = k + (Operand::ALONG_K ? at : line);
        threadgroup Staged *to = panel + line * LD + at;
        if (Whole || (to_x < x_end && to_k < k_end)) {
            operand.format.stage(operand.index(to_x, to_k), to);
        } else {
            UNROLL
            for (uint j = 0; j < WIDTH; j += 1) {
                to[j] = Staged(0.0f);
            }
        }
    }

    // The place of the matrix at (x, k) of the slice.
    INLINE static threadgroup const Staged *place(threadgroup const Staged *panel, uint x, uint k) {
        return panel + (Operand::ALONG_K ? x * LD + k : k * LD + x);
    }
};

using Staged = Stored<STAGED>::Type;
using A_Panel = Panel<A_Operand, Staged, BM>;
using B_Panel = Panel<B_Operand, Staged, BN>;

// Floats of threadgroup memory. It holds the two slices; later the same memory holds eight rows of
// sums per simdgroup, because matrices give no access to their elements.
constexpr constant uint SHARED_FLOATS =
    (A_Panel::SIZE + B_Panel::SIZE) * sizeof(Staged) / sizeof(float);
static_assert(SIMDGROUPS * 8 * COLUMNS <= SHARED_FLOATS,
    "the sums need more memory than the slices");

KERNEL(A_ARGUMENTS B_ARGUMENTS END_ARGUMENTS) {
    SHARED(float, shared, SHARED_FLOATS);
    threadgroup Staged *a_panel = reinterpret_cast<threadgroup Staged *>(shared);
    threadgroup Staged *b_panel = a_panel + A_Panel::SIZE;
    const Tile tile = schedule(linear_id(threadgroup_at, params), params SCHEDULE_VALUES);
    if (!tile.live) {
        return;
    }
    const A_Operand a = A_OPERAND(tile.batch);
    const B_Operand b = B_OPERAND(tile.group);
    const uint m_at = simdgroup / SIMDGROUPS_N * MATRICES_M * 8;
    const uint n_at = simdgroup % SIMDGROUPS_N * COLUMNS;
    const bool inside = tile.row + BM <= tile.row_end && tile.col + BN <= params.n;

    simdgroup_float8x8 sums[MATRICES_M][MATRICES_N];
    UNROLL
    for (uint i = 0; i < MATRICES_M; i += 1) {
        UNROLL
        for (uint j = 0; j < MATRICES_N; j += 1) {
            sums[i][j] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
        }
    }
    for (uint k = tile.k; k < tile.k_end; k += BK) {
        // A test in the way of every load would make each wait for the one before.
        if (inside && k + BK <= tile.k_end) {
            A_Panel::fill<true>(a_panel, a, tile.row, tile.row_end, k, tile.k_end, thread_index);
            B_Panel::fill<true>(b_panel, b, tile.col, params.n, k, tile.k_end, thread_index);
        } else {
            A_Panel::fill<false>(a_panel, a, tile.row, tile.row_end, k, tile.k_end, thread_index);
            B_Panel::fill<false>(b_panel, b, tile.col, params.n, k, tile.k_end, thread_index);
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        UNROLL
        for (uint kk = 0; kk < BK; kk += 8) {
            simdgroup_matrix<Staged, 8, 8> rows[MATRICES_M];
            simdgroup_matrix<Staged, 8, 8> columns[MATRICES_N];
            UNROLL
            for (uint i = 0; i < MATRICES_M; i += 1) {
                simdgroup_load(rows[i], A_Panel::place(a_panel, m_at + i * 8, kk), A_Panel::LD,
                    ulong2(0, 0), !A_Operand::ALONG_K);
            }
            simdgroup_barrier(mem_flags::mem_none);
            UNROLL
            for (uint j = 0; j < MATRICES_N; j += 1) {
                simdgroup_load(columns[j], B_Panel::place(b_panel, n_at + j * 8, kk), B_Panel::LD,
                    ulong2(0, 0), B_Operand::ALONG_K);
            }
            multiply(sums, rows, columns);
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }

    const auto end = END;
    threadgroup float *shown = shared + simdgroup * 8 * COLUMNS;
    UNROLL
    for (uint i = 0; i < MATRICES_M; i += 1) {
        UNROLL
        for (uint j = 0; j < MATRICES_N; j += 1) {
            simdgroup_store(sums[i][j], shown + j * 8, COLUMNS);
        }
        simdgroup_barrier(mem_flags::mem_threadgroup);
        for (uint at = lane; at < 8 * COLUMNS; at += SIMD) {
            end.store(tile, tile.row + m_at + i * 8 + at / COLUMNS, tile.col + n_at + at % COLUMNS,
                shown[at]);
        }
        simdgroup_barrier(mem_flags::mem_threadgroup);
    }
}
