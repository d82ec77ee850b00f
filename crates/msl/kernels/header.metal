// Start of every kernel, after `Params` (crates/core/src/params.rs).
// needs: Params SCHEDULE_ARGUMENTS
// provides: INLINE KERNEL LIMIT SHARED SIMD Stored UNROLL lane linear_id multiply params simdgroup
//        thread_index threadgroup_at
// constants: PARAMS_SLOT THREADS_LAUNCHED

#include <metal_stdlib>
#include <metal_simdgroup>
#include <metal_simdgroup_matrix>

// Memory that a threadgroup shares, aligned for moves of 16 bytes. The proof on CPUs
// (tests/src/harness) puts it elsewhere, each array apart.
#ifndef SHARED
#define SHARED(type, name, count) alignas(16) threadgroup type name[count]
#endif

// If a call is not inlined, its arguments by reference, such as arrays of matrices, lie in memory.
#ifndef INLINE
#define INLINE inline __attribute__((always_inline))
#endif

// An array lies in memory, too, if its index is known only when a kernel runs: loops are unrolled.
#define UNROLL _Pragma("clang loop unroll(full)")

// Without a limit the compiler shares out registers as for 1,024 threads. A limit of exactly one
// simdgroup is not asked for: Apple's compiler was seen to miscompile there.
#if THREADS_LAUNCHED > 64
#define LIMIT [[max_total_threads_per_threadgroup(THREADS_LAUNCHED)]]
#else
#define LIMIT [[max_total_threads_per_threadgroup(64)]]
#endif

// The entry point of a text, and the end of the namespace. Its part files name the `buffers`.
#define KERNEL(buffers)                                                                            \
    }                                                                                              \
    using namespace metal;                                                                         \
    using namespace tilewise;                                                                      \
    LIMIT kernel void tilewise_main(                                                               \
        constant Params &params [[buffer(PARAMS_SLOT)]] SCHEDULE_ARGUMENTS buffers,                \
        uint3 threadgroup_at [[threadgroup_position_in_grid]],                                     \
        uint thread_index [[thread_index_in_threadgroup]],                                         \
        uint simdgroup [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]])

// The namespace keeps our names apart from present and future names of Metal's headers.
namespace tilewise {

using namespace metal;

// The type of a scale, or of an element of simdgroup matrices, by number.
template <uint Number>
struct Stored;
template <>
struct Stored<0> {
    using Type = float;
};
template <>
struct Stored<1> {
    using Type = half;
};
#if __METAL_VERSION__ >= 310
template <>
struct Stored<2> {
    using Type = bfloat;
};
#endif

// Threads of a simdgroup.
constexpr constant uint SIMD = 32;

// Grids are linearised, because one dimension ends at 65,535 threadgroups.
INLINE uint linear_id(uint3 threadgroup_at, constant Params &params) {
    return threadgroup_at.y * params.grid_x + threadgroup_at.x;
}

// Products of a column of matrices and a row of them. Every other row runs backwards, so that
// neighbouring products share a matrix. The barriers order no memory: they keep the compiler from
// mixing loads and products, which would take more registers.
template <typename T, uint M, uint N>
INLINE void multiply(thread simdgroup_float8x8 (&sums)[M][N],
                     thread simdgroup_matrix<T, 8, 8> (&rows)[M],
                     thread simdgroup_matrix<T, 8, 8> (&columns)[N]) {
    simdgroup_barrier(mem_flags::mem_none);
    UNROLL
    for (uint i = 0; i < M; i += 1) {
        UNROLL
        for (uint at = 0; at < N; at += 1) {
            const uint j = i % 2 == 0 ? at : N - 1 - at;
            simdgroup_multiply_accumulate(sums[i][j], rows[i], columns[j], sums[i][j]);
        }
    }
    simdgroup_barrier(mem_flags::mem_none);
}
