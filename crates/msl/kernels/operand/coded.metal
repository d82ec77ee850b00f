// The functions that all loaders of quantized formats share.
// needs: Eight INLINE UNROLL dot_of put
// offers: Coded Scaled

// Codes as numbers, under a scale and less a minimum that the eight from a multiple of 8 on share.
template <typename Codes>
struct Scaled {
    Codes codes;

    INLINE float load(uint i) const thread {
        const float2 scale = codes.scale(i);
        return scale.x * codes.code(i) - scale.y;
    }

    INLINE Eight eight(uint i) const thread {
        Eight eight = {};
        const float2 scale = codes.scale(i);
        UNROLL
        for (uint j = 0; j < 8; j += 1) {
            eight.at[j] = scale.x * codes.code(i + j) - scale.y;
        }
        return eight;
    }
};

// A format by its codes, which give an element, and eight that follow each other. Rows are whole
// blocks: of eight at a stride of 1 all exist or none. Sums take codes as numbers.
template <typename Codes>
struct Coded {
    static constexpr constant uint WIDTH = 8;

    Codes codes;

    INLINE float load(uint i) const thread {
        return codes.load(i);
    }

    template <typename Staged>
    INLINE void stage(uint i, threadgroup Staged *to) const thread {
        put(codes.eight(i), to);
    }

    INLINE Eight eight(uint i, uint stride, uint n) const thread {
        if (stride == 1 && n > 0) {
            return codes.eight(i);
        }
        Eight eight = {};
        UNROLL
        for (uint j = 0; j < 8; j += 1) {
            if (j < n) {
                eight.at[j] = codes.load(i + j * stride);
            }
        }
        return eight;
    }

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
