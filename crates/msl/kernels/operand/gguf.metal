// Operand in a format of GGUF with blocks of 32 along K: a scale, perhaps a least element, and
// codes of 4, 5 or 8 bits. Rows are whole blocks, so the linear index gives the block. The low
// nibbles of 16 bytes are elements 0 to 15, the high ones elements 16 to 31; fifth bits are a word
// before them.
// needs: Coded Eight INLINE UNROLL
// provides: X_ARGUMENTS X_Codes X_Format X_VALUES x_codes x_scales
// constants: X_BITS X_LEAST X_LESS X_PLANE_1_SLOT X_SLOT X_TABLE

#define X_ARGUMENTS \
    , device const uchar *x_scales [[buffer(X_SLOT)]], \
        device const uint *x_codes [[buffer(X_PLANE_1_SLOT)]]
#define X_VALUES x_scales, x_codes

struct X_Codes {
    device const uchar *scales;
    device const uint *codes;

    // Half j of the scales.
    INLINE float half_at(uint j) const thread {
        return float(reinterpret_cast<device const half *>(scales)[j]);
    }

    // The scale of a block. Exponents stand for 2^(byte - 128), or for 0 if that is subnormal.
    INLINE float scale(uint block) const thread {
        if (X_TABLE == 3) {
            return as_type<float>((max(uint(scales[block]), 1u) - 1) << 23);
        }
        return half_at(X_LEAST != 0 ? 2 * block : block);
    }

    INLINE float least(uint block) const thread {
        return X_LEAST != 0 ? half_at(2 * block + 1) : 0.0f;
    }

    // The value of a code of IQ4_NL: four to a word, as signed bytes.
    INLINE static float nl(uint code) {
        const uint low = (code & 4) != 0 ? 0xf6eaddcfu : 0xbfad9881u;
        const uint high = (code & 4) != 0 ? 0x71594535u : 0x26190d01u;
        return float(char(((code & 8) != 0 ? high : low) >> ((code & 3) * 8)));
    }

    // The number of element j of a block, whose codes are X_BITS words.
    INLINE float value(uint block, uint j) const thread {
        const uint first = block * X_BITS;
        if (X_BITS == 8) {
            return float(char(codes[first + j / 4] >> (j % 4 * 8)));
        }
        uint code = (codes[first + X_BITS % 4 + j % 16 / 4] >> (j % 4 * 8 + j / 16 * 4)) & 15;
        if (X_BITS == 5) {
            code |= ((codes[first] >> j) & 1) << 4;
        }
        if (X_TABLE == 2) {
            return nl(code);
        }
        if (X_TABLE == 3) {
            // A table of nibbles has the doubled magnitudes of e2m1; bit 3 is the sign.
            const float magnitude = float((0xc8643210u >> ((code & 7) * 4)) & 15);
            return (code & 8) != 0 ? -magnitude : magnitude;
        }
        return float(code) - X_LESS;
    }

    INLINE float load(uint i) const thread {
        return fma(scale(i / 32), value(i / 32, i % 32), least(i / 32));
    }

    // i is a multiple of 8.
    INLINE Eight eight(uint i) const thread {
        Eight eight = {};
        const float scale = this->scale(i / 32);
        const float least = this->least(i / 32);
        UNROLL
        for (uint j = 0; j < 8; j += 1) {
            eight.at[j] = fma(scale, value(i / 32, i % 32 + j), least);
        }
        return eight;
    }
};

using X_Format = Coded<X_Codes>;
