// Operand in affine codes of 4 or 8 bits, in groups along K (MLX): element = scale · code + bias.
// The first code of a word lies in its lowest bits; a scale and a bias per group. Rows are whole
// groups, so the linear index gives word and group.
// needs: Eight Stored stage_eight
// provides: X_ARGUMENTS X_Format X_Scale X_VALUES x_biases x_codes x_scales
// constants: X_BITS X_BLOCK X_PLANE_1_SLOT X_PLANE_2_SLOT X_SCALE X_SLOT

#define X_ARGUMENTS                                                                                                                     \
    , device const uint *x_codes [[buffer(X_SLOT)]], device const X_Scale *x_scales [[buffer(X_PLANE_1_SLOT)]],                         \
        device const X_Scale *x_biases [[buffer(X_PLANE_2_SLOT)]]
#define X_VALUES x_codes, x_scales, x_biases

using X_Scale = Stored<X_SCALE>::Type;

struct X_Format {
    // Codes become numbers of this type: in 16 bits they would be rounded once more.
    using Element = float;
    static constexpr constant uint WIDTH = 8;
    // Codes in a word and in half of one; words and halves of eight codes.
    static constexpr constant uint CODES = 32 / X_BITS;
    static constexpr constant uint HALF = CODES / 2;
    static constexpr constant uint WORDS = 8 / CODES;
    static constexpr constant uint HALVES = 8 / HALF;
    static constexpr constant uint MASK = (1 << X_BITS) - 1;

    device const uint *codes;
    device const X_Scale *scales;
    device const X_Scale *biases;

    float load(uint i) const {
        const float code = float((codes[i / CODES] >> (i % CODES * X_BITS)) & MASK);
        return fma(float(scales[i / X_BLOCK]), code, float(biases[i / X_BLOCK]));
    }

    // i is a multiple of 8, here and below.
    template <typename Staged>
    void stage(uint i, threadgroup Staged *to) const {
        stage_eight(eight(i), to);
    }

    // Rows lie along K and are whole groups: the stride is 1, and eight exist.
    Eight eight(uint i, uint, uint) const {
        return eight(i);
    }

    Eight eight(uint i) const {
        Eight eight = {};
        const Raw raw = this->raw(i);
#pragma unroll
        for (uint j = 0; j < 8; j += 1) {
            const uint code = (raw.codes[j / CODES] >> (j % CODES * X_BITS)) & MASK;
            eight.at[j] = fma(raw.scale, float(code), raw.bias);
        }
        return eight;
    }

    // Eight codes, which share a scale and a bias.
    struct Raw {
        uint codes[WORDS];
        float scale;
        float bias;
    };

    Raw raw(uint i, uint, uint) const {
        return raw(i);
    }

    Raw raw(uint i) const {
        Raw raw = {};
#pragma unroll
        for (uint j = 0; j < WORDS; j += 1) {
            raw.codes[j] = codes[i / CODES + j];
        }
        raw.scale = float(scales[i / X_BLOCK]);
        raw.bias = float(biases[i / X_BLOCK]);
        return raw;
    }

    // Σ x · (scale · code + bias) = scale · Σ x · code + bias · Σ x. Codes are masked where they
    // stand in each half of a word and never shifted: a code's place in it is a power of two, by
    // which its x is divided once for all rows of weights. (An infinite x, or one beyond 1e36, may
    // give no number here, where it would give an infinity or a number if weights were multiplied
    // one by one.)
    struct Spread {
        float at[8];
        float sum;
    };

    static Spread spread(Eight x) {
        Spread spread = {};
        float place = 1;
#pragma unroll
        for (uint j = 0; j < HALF; j += 1) {
            float sum = 0;
#pragma unroll
            for (uint h = 0; h < HALVES; h += 1) {
                const uint at = h * HALF + j;
                spread.at[at] = x.at[at] * place;
                sum += x.at[at];
            }
            spread.sum += sum;
            place /= 1 << X_BITS;
        }
        return spread;
    }

    static float dot(Raw raw, Spread spread) {
        float sum = 0;
        uint mask = MASK;
#pragma unroll
        for (uint j = 0; j < HALF; j += 1) {
#pragma unroll
            for (uint h = 0; h < HALVES; h += 1) {
                const uint word = raw.codes[h / 2];
                const uint codes = h % 2 == 0 ? word & 0xffff : word >> 16;
                sum = fma(float(codes & mask), spread.at[h * HALF + j], sum);
            }
            mask <<= X_BITS;
        }
        return fma(raw.scale, sum, raw.bias * spread.sum);
    }
};
