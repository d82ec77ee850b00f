// What loaders of quantized formats share.
// needs: Eight INLINE dot_of put
// provides: Coded

// A format by its codes, which give an element, and eight along K. Rows lie along K and are whole
// blocks: the stride is 1, and eight exist. Sums take codes as numbers.
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

    INLINE Eight eight(uint i, uint, uint) const thread {
        return codes.eight(i);
    }

    static constexpr constant uint SPAN = 8;
    using Raw = Eight;
    using Numbers = Eight;
    using Spread = Eight;

    INLINE Raw raw(uint i, uint, uint) const thread {
        return codes.eight(i);
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
