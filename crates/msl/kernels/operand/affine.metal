// Operand in affine codes of 4 or 8 bits, in groups along K (MLX), stored along K: element = scale
// · code + bias. The first code of a word lies in its lowest bits; a scale and a bias per group.
// Rows are whole groups, so the linear index gives word and group.
// needs: Eight INLINE Stored UNROLL put
// provides: X_ARGUMENTS X_Format X_Scale X_VALUES x_biases x_codes x_scales
// constants: X_BITS X_BLOCK X_PLANE_1_SLOT X_PLANE_2_SLOT X_SCALE X_SLOT

#define X_ARGUMENTS \
    , device const uint *x_codes [[buffer(X_SLOT)]], \
        device const X_Scale *x_scales [[buffer(X_PLANE_1_SLOT)]], \
        device const X_Scale *x_biases [[buffer(X_PLANE_2_SLOT)]]
#define X_VALUES x_codes, x_scales, x_biases

using X_Scale = Stored<X_SCALE>::Type;

struct X_Format {
    static constexpr constant uint WIDTH = 8;
    // Codes in a word and in half of one, and halves of eight codes.
    static constexpr constant uint CODES = 32 / X_BITS;
    static constexpr constant uint HALF = CODES / 2;
    static constexpr constant uint HALVES = 8 / HALF;
    static constexpr constant uint MASK = (1 << X_BITS) - 1;
    // The codes that a lane of a dot product takes at a time, and their words. They share one scale
    // and one bias.
    static constexpr constant uint SPAN = 16;
    static constexpr constant uint WORDS = SPAN / CODES;
    static_assert(X_BLOCK % SPAN == 0, "a scale for each span");

    device const uint *codes;
    device const X_Scale *scales;
    device const X_Scale *biases;

    INLINE float load(uint i) const thread {
        const float code = float((codes[i / CODES] >> (i % CODES * X_BITS)) & MASK);
        return fma(float(scales[i / X_BLOCK]), code, float(biases[i / X_BLOCK]));
    }

    // i is a multiple of 8, here and below.
    template <typename Staged>
    INLINE void stage(uint i, threadgroup Staged *to) const thread {
        put(eight(i), to);
    }

    // Rows lie along K and are whole groups: the stride is 1, and eight exist.
    INLINE Eight eight(uint i, uint, uint) const thread {
        return eight(i);
    }

    INLINE Eight eight(uint i) const thread {
        Eight eight = {};
        const float scale = float(scales[i / X_BLOCK]);
        const float bias = float(biases[i / X_BLOCK]);
        UNROLL
        for (uint first = 0; first < 8; first += CODES) {
            const uint word = codes[(i + first) / CODES];
            UNROLL
            for (uint j = 0; j < CODES; j += 1) {
                eight.at[first + j] = fma(scale, float((word >> (j * X_BITS)) & MASK), bias);
            }
        }
        return eight;
    }

    struct Raw {
        vec<uint, WORDS> words;
        float scale;
        float bias;
    };

    // i is a multiple of SPAN, as K splits and groups are.
    INLINE Raw raw(uint i, uint, uint) const thread {
        Raw raw = {};
        raw.words = *reinterpret_cast<device const vec<uint, WORDS> *>(codes + i / CODES);
        raw.scale = float(scales[i / X_BLOCK]);
        raw.bias = float(biases[i / X_BLOCK]);
        return raw;
    }

    // Σ x · (scale · code + bias) = scale · Σ x · code + bias · Σ x. Codes are masked where they
    // stand in each half of a word and never shifted: a code's place in it is a power of two, by
    // which its x is divided once for all rows of weights. (An infinite x, or one beyond 1e36, may
    // give no number here, where it would give an infinity or a number if weights were multiplied
    // one by one.)
    struct Numbers {
        float at[8];
        float scale;
        float bias;
    };

    struct Spread {
        float at[8];
        float sum;
    };

    // Numbers of the eight codes of a span from code `from` on.
    INLINE static Numbers numbers(Raw raw, uint from) {
        Numbers numbers = {};
        UNROLL
        for (uint h = 0; h < HALVES; h += 1) {
            const uint word = raw.words[(from / HALF + h) / 2];
            const uint codes = h % 2 == 0 ? word & 0xffff : word >> 16;
            UNROLL
            for (uint j = 0; j < HALF; j += 1) {
                numbers.at[h * HALF + j] = float(codes & (MASK << (j * X_BITS)));
            }
        }
        numbers.scale = raw.scale;
        numbers.bias = raw.bias;
        return numbers;
    }

    INLINE static Spread spread(Eight x) {
        Spread spread = {};
        UNROLL
        for (uint h = 0; h < HALVES; h += 1) {
            UNROLL
            for (uint j = 0; j < HALF; j += 1) {
                // Dividing by a power of two rounds nothing.
                const float place = 1.0f / float(1 << (j * X_BITS));
                spread.at[h * HALF + j] = x.at[h * HALF + j] * place;
                spread.sum += x.at[h * HALF + j];
            }
        }
        return spread;
    }

    INLINE static float dot(Numbers numbers, Spread spread) {
        float sum = 0;
        UNROLL
        for (uint j = 0; j < 8; j += 1) {
            sum = fma(numbers.at[j], spread.at[j], sum);
        }
        return fma(numbers.scale, sum, numbers.bias * spread.sum);
    }
};
