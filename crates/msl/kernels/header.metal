// What every kernel begins with, after `Params` (crates/core/src/params.rs).
// needs: Params SCHEDULE_ARGUMENTS
// provides: Common KERNEL LIMIT SHARED SIMD Stored lane linear_id params simdgroup thread_index
//        threadgroup_at
// constants: PARAMS_SLOT THREADS_LAUNCHED

#include <metal_stdlib>
#include <metal_simdgroup>
#include <metal_simdgroup_matrix>

using namespace metal;

// Memory that a threadgroup shares, aligned for moves of 16 bytes. The proof on CPUs (crates/msl-harness) puts it elsewhere, each array apart.
#ifndef SHARED
#define SHARED(type, name, count) alignas(16) threadgroup type name[count]
#endif

// The type of a scale, by number.
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

// What both operands' elements become: what they are if they agree, else f32.
template <typename A, typename B>
struct Common {
    using Type = float;
};
template <typename T>
struct Common<T, T> {
    using Type = T;
};

// Threads of a simdgroup.
constexpr constant uint SIMD = 32;

// Grids are linearised, because one dimension ends at 65,535 threadgroups.
inline uint linear_id(uint3 threadgroup_at, constant Params &params) {
    return threadgroup_at.y * params.grid_x + threadgroup_at.x;
}

// Unless it is said how many threads there will be, a kernel of many registers may turn out to allow fewer. A simdgroup fits always, and Apple's compiler was
// seen to miscompile where just 32 were asked for.
#if THREADS_LAUNCHED > 32
#define LIMIT [[max_total_threads_per_threadgroup(THREADS_LAUNCHED)]]
#else
#define LIMIT
#endif

// An entry point: the one of its text. `buffers` are those that its parts name for themselves.
#define KERNEL(buffers)                                                                                                                 \
    LIMIT kernel void tilewise_main(constant Params &params [[buffer(PARAMS_SLOT)]] SCHEDULE_ARGUMENTS buffers,                         \
                                    uint3 threadgroup_at [[threadgroup_position_in_grid]],                                              \
                                    uint thread_index [[thread_index_in_threadgroup]],                                                  \
                                    uint simdgroup [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]])
