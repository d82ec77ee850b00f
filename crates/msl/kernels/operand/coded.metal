// What loaders of quantized formats share.

// Eight numbers on their way to simdgroup matrices.
template <typename Staged>
inline void stage_eight(Eight numbers, threadgroup Staged *to) {
#pragma unroll
    for (uint j = 0; j < 8; j += 1) {
        to[j] = Staged(numbers.at[j]);
    }
}

// Elements i, i + stride and so on of a format, one by one: n of eight exist, the others are 0 and never read.
template <typename Format>
inline Eight eight_apart(Format format, uint i, uint stride, uint n) {
    Eight eight = {};
#pragma unroll
    for (uint j = 0; j < 8; j += 1) {
        if (j < n) {
            eight.at[j] = format.load(i + j * stride);
        }
    }
    return eight;
}
