// Operand in affine 4-bit codes, groups of 64 along K (MLX): element = scale · code + bias. Eight codes to a word, low nibble first; a scale and a bias per
// group. Rows are whole groups, so the linear index gives word and group.
// needs: Eight Stored
// provides: X_ARGUMENTS X_Format X_Scale X_VALUES x_biases x_codes x_scales
// constants: X_BIASES_SLOT X_SCALES_SLOT X_SCALE_TYPE X_SLOT

#define X_ARGUMENTS                                                                                                                     \
    , device const uint *x_codes [[buffer(X_SLOT)]], device const X_Scale *x_scales [[buffer(X_SCALES_SLOT)]],                          \
        device const X_Scale *x_biases [[buffer(X_BIASES_SLOT)]]
#define X_VALUES x_codes, x_scales, x_biases

using X_Scale = Stored<X_SCALE_TYPE>::Type;

struct X_Format {
    // Codes become numbers of this type: in 16 bits they would be rounded once more.
    using Element = float;
    static constexpr constant uint WIDTH = 8;
    static constexpr constant uint GROUP = 64;

    device const uint *codes;
    device const X_Scale *scales;
    device const X_Scale *biases;

    float load(uint i) const {
        const float code = float((codes[i / 8] >> (i % 8 * 4)) & 15);
        return fma(float(scales[i / GROUP]), code, float(biases[i / GROUP]));
    }

    // i is a multiple of 8, here and below.
    template <typename Staged>
    void stage(uint i, threadgroup Staged *to) const {
        const Eight numbers = eight(i);
#pragma unroll
        for (uint j = 0; j < 8; j += 1) {
            to[j] = Staged(numbers.at[j]);
        }
    }

    Eight eight(uint i) const {
        Eight eight = {};
        const uint word = codes[i / 8];
        const float scale = float(scales[i / GROUP]);
        const float bias = float(biases[i / GROUP]);
#pragma unroll
        for (uint j = 0; j < 8; j += 1) {
            eight.at[j] = fma(scale, float((word >> (4 * j)) & 15), bias);
        }
        return eight;
    }

    // Rows lie along K and are whole groups: the stride is 1, and eight exist.
    Eight eight(uint i, uint, uint) const {
        return eight(i);
    }

    // Eight codes, which share a scale and a bias.
    struct Raw {
        uint codes;
        float scale;
        float bias;
    };

    Raw raw(uint i, uint, uint) const {
        return {codes[i / 8], float(scales[i / GROUP]), float(biases[i / GROUP])};
    }

    // Σ x · (scale · code + bias) = scale · Σ x · code + bias · Σ x. Codes are masked where they stand in each half of the word and never shifted: a code's
    // place in it is a power of 16, by which its x is divided once for all rows of weights. (An infinite x, or one beyond 1e36, may give no number here, where
    // it would give an infinity or a number if weights were multiplied one by one.)
    struct Spread {
        float at[8];
        float sum;
    };

    static Spread spread(Eight x) {
        Spread spread = {};
        float place = 1;
#pragma unroll
        for (uint j = 0; j < 4; j += 1) {
            spread.at[j] = x.at[j] * place;
            spread.at[j + 4] = x.at[j + 4] * place;
            spread.sum += x.at[j] + x.at[j + 4];
            place /= 16;
        }
        return spread;
    }

    static float dot(Raw raw, Spread spread) {
        const uint low = raw.codes & 0xffff;
        const uint high = raw.codes >> 16;
        float sum = 0;
        uint mask = 15;
#pragma unroll
        for (uint j = 0; j < 4; j += 1) {
            sum = fma(float(low & mask), spread.at[j], sum);
            sum = fma(float(high & mask), spread.at[j + 4], sum);
            mask <<= 4;
        }
        return fma(raw.scale, sum, raw.bias * spread.sum);
    }
};
