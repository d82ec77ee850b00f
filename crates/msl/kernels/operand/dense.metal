// Elements one after the other.
// needs: INLINE UNROLL
// offers: Dense Eight dot_of move put unpack

// Eight neighbours along some axis, as numbers.
struct Eight {
    float at[8];
};

INLINE float dot_of(Eight a, Eight b) {
    float sum = 0;
    UNROLL
    for (uint j = 0; j < 8; j += 1) {
        sum = fma(a.at[j], b.at[j], sum);
    }
    return sum;
}

// Numbers in 16 bytes of memory.
INLINE void unpack(device const float *from, thread float *to) {
    const float4 words = *reinterpret_cast<device const float4 *>(from);
    to[0] = words.x;
    to[1] = words.y;
    to[2] = words.z;
    to[3] = words.w;
}

template <typename Half>
INLINE void unpack(device const Half *from, thread float *to) {
    const uint4 words = *reinterpret_cast<device const uint4 *>(from);
    UNROLL
    for (uint j = 0; j < 4; j += 1) {
        to[2 * j] = float(as_type<Half>(ushort(words[j])));
        to[2 * j + 1] = float(as_type<Half>(ushort(words[j] >> 16)));
    }
}

// Numbers on their way to simdgroup matrices, rounded to the type that these have. `to` is aligned
// to 16 bytes.
INLINE void put(Eight numbers, threadgroup float *to) {
    threadgroup float4 *words = reinterpret_cast<threadgroup float4 *>(to);
    words[0] = float4(numbers.at[0], numbers.at[1], numbers.at[2], numbers.at[3]);
    words[1] = float4(numbers.at[4], numbers.at[5], numbers.at[6], numbers.at[7]);
}

template <typename Half>
INLINE void put(Eight numbers, threadgroup Half *to) {
    uint4 words = uint4(0);
    UNROLL
    for (uint j = 0; j < 4; j += 1) {
        const uint low = as_type<ushort>(Half(numbers.at[2 * j]));
        const uint high = as_type<ushort>(Half(numbers.at[2 * j + 1]));
        words[j] = low | high << 16;
    }
    *reinterpret_cast<threadgroup uint4 *>(to) = words;
}

// 16 bytes to simdgroup matrices of their type, or of floats.
template <typename T>
INLINE void move(device const T *from, threadgroup T *to) {
    *reinterpret_cast<threadgroup uint4 *>(to) = *reinterpret_cast<device const uint4 *>(from);
}

INLINE void move(device const float *from, threadgroup float *to) {
    *reinterpret_cast<threadgroup float4 *>(to) = *reinterpret_cast<device const float4 *>(from);
}

template <typename Half>
INLINE void move(device const Half *from, threadgroup float *to) {
    Eight numbers = {};
    unpack(from, numbers.at);
    put(numbers, to);
}

// `Width` elements are loaded together, 16 bytes, or one: offset, strides, the contiguous extent
// and the places where loads begin are multiples of it.
template <typename T, uint Width>
struct Dense {
    static constexpr constant uint WIDTH = Width;

    device const T *data;

    INLINE float load(uint i) const thread {
        return float(data[i]);
    }

    // WIDTH elements from i on, for simdgroup matrices.
    template <typename Staged>
    INLINE void stage(uint i, threadgroup Staged *to) const thread {
        if (Width == 1) {
            to[0] = Staged(data[i]);
        } else {
            move(data + i, to);
        }
    }

    // Elements i, i + stride and so on, of which n exist; the others are 0 and never read.
    INLINE Eight eight(uint i, uint stride, uint n) const thread {
        // Loops to 8 and not to n: registers have no places that are known only when a kernel runs.
        Eight eight = {};
        if (Width > 1 && stride == 1) {
            UNROLL
            for (uint j = 0; j < 8; j += Width) {
                if (j < n) {
                    unpack(data + i + j, eight.at + j);
                }
            }
        } else {
            UNROLL
            for (uint j = 0; j < 8; j += 1) {
                if (j < n) {
                    eight.at[j] = float(data[i + j * stride]);
                }
            }
        }
        return eight;
    }

    // A dot product takes SPAN elements from memory (Raw), makes numbers of eight of them
    // (Numbers), and prepares eight of the other operand (Spread). Here all three are plain
    // numbers.
    static constexpr constant uint SPAN = 8;
    using Raw = Eight;
    using Numbers = Eight;
    using Spread = Eight;

    INLINE Raw raw(uint i, uint stride, uint n) const thread {
        return eight(i, stride, n);
    }

    INLINE static Numbers numbers(Raw raw, uint) {
        return raw;
    }

    INLINE static Spread spread(Eight eight) {
        return eight;
    }

    INLINE static float dot(Numbers numbers, Spread spread) {
        return dot_of(numbers, spread);
    }
};
