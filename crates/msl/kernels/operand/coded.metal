// What loaders of quantized formats share.

// Eight numbers on their way to simdgroup matrices.
template <typename Staged>
inline void stage_eight(Eight numbers, threadgroup Staged *to) {
#pragma unroll
    for (uint j = 0; j < 8; j += 1) {
        to[j] = Staged(numbers.at[j]);
    }
}
