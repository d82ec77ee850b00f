// Operand in mxfp4: codes of e2m1, eight to a word, low nibble first; a byte per block of 32 along
// K, the exponent of its scale. Rows are whole blocks, so the linear index gives word and scale.
// needs: Coded Eight INLINE UNROLL
// provides: X_ARGUMENTS X_Codes X_Format X_VALUES x_codes x_scales
// constants: X_PLANE_1_SLOT X_SLOT

#define X_ARGUMENTS , device const uint *x_codes [[buffer(X_SLOT)]], device const uchar *x_scales [[buffer(X_PLANE_1_SLOT)]]
#define X_VALUES x_codes, x_scales

struct X_Codes {
    device const uint *codes;
    device const uchar *scales;

    // The scale of the block that holds element i: 2^(byte - 127), or 0 where that is subnormal.
    INLINE float scale(uint i) const thread {
        return as_type<float>(uint(scales[i / 32]) << 23);
    }

    // The value of a code. A table of nibbles has twice the magnitudes; bit 3 is the sign.
    INLINE float value(uint code) const thread {
        const float magnitude = 0.5f * float((0xc8643210u >> ((code & 7) * 4)) & 15);
        return (code & 8) != 0 ? -magnitude : magnitude;
    }

    INLINE float load(uint i) const thread {
        return scale(i) * value(codes[i / 8] >> (i % 8 * 4));
    }

    // i is a multiple of 8.
    INLINE Eight eight(uint i) const thread {
        Eight eight = {};
        const uint word = codes[i / 8];
        const float scale = this->scale(i);
        UNROLL
        for (uint j = 0; j < 8; j += 1) {
            eight.at[j] = scale * value(word >> (4 * j));
        }
        return eight;
    }
};

using X_Format = Coded<X_Codes>;
