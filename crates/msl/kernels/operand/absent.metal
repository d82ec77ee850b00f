// Operand that is not there (no bias, no residual, K = 0): nothing of it is read.
// needs: Eight
// provides: X_ARGUMENTS X_Format X_VALUES

#define X_ARGUMENTS
#define X_VALUES

struct X_Format {
    using Element = float;
    static constexpr constant uint WIDTH = 1;

    float load(uint) const {
        return 0;
    }

    template <typename Staged>
    void stage(uint, threadgroup Staged *to) const {
        to[0] = 0;
    }

    Eight eight(uint, uint, uint) const {
        return {};
    }

    using Raw = Eight;
    using Spread = Eight;

    Raw raw(uint, uint, uint) const {
        return {};
    }

    static Spread spread(Eight eight) {
        return eight;
    }

    static float dot(Raw, Spread) {
        return 0;
    }
};
