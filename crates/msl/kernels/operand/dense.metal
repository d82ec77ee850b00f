// Elements one after the other.
// needs: nothing
// provides: Dense Eight dot_of move unpack

// Eight neighbours along some axis, as numbers.
struct Eight {
    float at[8];
};

inline float dot_of(Eight a, Eight b) {
    float sum = 0;
#pragma unroll
    for (uint j = 0; j < 8; j += 1) {
        sum = fma(a.at[j], b.at[j], sum);
    }
    return sum;
}

// Numbers in 16 bytes of memory.
inline void unpack(device const float *from, thread float *to) {
    const float4 words = *reinterpret_cast<device const float4 *>(from);
    to[0] = words.x;
    to[1] = words.y;
    to[2] = words.z;
    to[3] = words.w;
}

template <typename Half>
inline void unpack(device const Half *from, thread float *to) {
    const uint4 words = *reinterpret_cast<device const uint4 *>(from);
#pragma unroll
    for (uint j = 0; j < 4; j += 1) {
        to[2 * j] = float(as_type<Half>(ushort(words[j])));
        to[2 * j + 1] = float(as_type<Half>(ushort(words[j] >> 16)));
    }
}

// 16 bytes as they are, or element by element where they are staged as another type.
template <uint Width, typename T>
inline void move(device const T *from, threadgroup T *to) {
    *reinterpret_cast<threadgroup uint4 *>(to) = *reinterpret_cast<device const uint4 *>(from);
}

template <uint Width, typename T, typename Staged>
inline void move(device const T *from, threadgroup Staged *to) {
#pragma unroll
    for (uint j = 0; j < Width; j += 1) {
        to[j] = Staged(from[j]);
    }
}

// `Width` elements are loaded together, 16 bytes, or one: offset, strides, the contiguous extent and the places where loads begin are multiples of it.
template <typename T, uint Width>
struct Dense {
    using Element = T;
    static constexpr constant uint WIDTH = Width;

    device const T *data;

    float load(uint i) const {
        return float(data[i]);
    }

    // WIDTH elements from i on, for simdgroup matrices.
    template <typename Staged>
    void stage(uint i, threadgroup Staged *to) const {
        if (Width == 1) {
            to[0] = Staged(data[i]);
        } else {
            move<Width>(data + i, to);
        }
    }

    // Elements i, i + stride and so on, of which n exist; the others are 0 and never read.
    Eight eight(uint i, uint stride, uint n) const {
        // Loops to 8 and not to n: registers have no places that are known only when a kernel runs.
        Eight eight = {};
        if (Width > 1 && stride == 1) {
#pragma unroll
            for (uint j = 0; j < 8; j += Width) {
                if (j < n) {
                    unpack(data + i + j, eight.at + j);
                }
            }
        } else {
#pragma unroll
            for (uint j = 0; j < 8; j += 1) {
                if (j < n) {
                    eight.at[j] = float(data[i + j * stride]);
                }
            }
        }
        return eight;
    }

    // What a dot product of eights takes from memory, and what it makes of the other side before: here, both as they are.
    using Raw = Eight;
    using Spread = Eight;

    Raw raw(uint i, uint stride, uint n) const {
        return eight(i, stride, n);
    }

    static Spread spread(Eight eight) {
        return eight;
    }

    static float dot(Raw raw, Spread spread) {
        return dot_of(raw, spread);
    }
};
