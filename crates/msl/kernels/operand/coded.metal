// What loaders of quantized formats share.
// needs: Eight dot_of
// provides: Coded stage_eight

// Eight numbers on their way to simdgroup matrices.
template <typename Staged>
inline void stage_eight(Eight numbers, threadgroup Staged *to) {
#pragma unroll
    for (uint j = 0; j < 8; j += 1) {
        to[j] = Staged(numbers.at[j]);
    }
}

// A format by its codes, which give an element, and eight along K. Rows lie along K and are whole
// blocks: the stride is 1, and eight exist. Sums take codes as numbers.
template <typename Codes>
struct Coded {
    using Element = float;
    static constexpr constant uint WIDTH = 8;

    Codes codes;

    float load(uint i) const {
        return codes.load(i);
    }

    template <typename Staged>
    void stage(uint i, threadgroup Staged *to) const {
        stage_eight(codes.eight(i), to);
    }

    Eight eight(uint i, uint, uint) const {
        return codes.eight(i);
    }

    using Raw = Eight;
    using Spread = Eight;

    Raw raw(uint i, uint, uint) const {
        return codes.eight(i);
    }

    static Spread spread(Eight eight) {
        return eight;
    }

    static float dot(Raw raw, Spread spread) {
        return dot_of(raw, spread);
    }
};
