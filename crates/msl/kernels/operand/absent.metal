// Operand that is not there (no bias, no residual, K = 0): nothing of it is read.
// needs: Eight INLINE
// provides: X_ARGUMENTS X_Format X_VALUES

#define X_ARGUMENTS
#define X_VALUES

struct X_Format {
    static constexpr constant uint WIDTH = 1;

    INLINE float load(uint) const thread {
        return 0;
    }

    template <typename Staged>
    INLINE void stage(uint, threadgroup Staged *to) const thread {
        to[0] = 0;
    }

    INLINE Eight eight(uint, uint, uint) const thread {
        return {};
    }

    static constexpr constant uint SPAN = 8;
    using Raw = Eight;
    using Numbers = Eight;
    using Spread = Eight;

    INLINE Raw raw(uint, uint, uint) const thread {
        return {};
    }

    INLINE static Numbers numbers(Raw raw, uint) {
        return raw;
    }

    INLINE static Spread spread(Eight eight) {
        return eight;
    }

    INLINE static float dot(Numbers, Spread) {
        return 0;
    }
};
