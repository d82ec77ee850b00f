// Operand in a microscaling format: codes of e2m1 in 4 bits or of e4m3 in 8, low bits first; a byte
// per block along K, the exponent of its scale or a scale in e4m3. Rows are whole blocks, so the
// linear index gives word and scale.
// needs: Coded Eight INLINE UNROLL
// provides: X_ARGUMENTS X_Codes X_Format X_VALUES x_codes x_scales
// constants: X_BITS X_BLOCK X_E4M3_SCALE X_PLANE_1_SLOT X_SLOT

#define X_ARGUMENTS \
    , device const uint *x_codes [[buffer(X_SLOT)]], \
        device const uchar *x_scales [[buffer(X_PLANE_1_SLOT)]]
#define X_VALUES x_codes, x_scales

struct X_Codes {
    device const uint *codes;
    device const uchar *scales;

    // A table of nibbles has twice the magnitudes of e2m1; bit 3 is the sign.
    INLINE float e2m1(uint code) const thread {
        const float magnitude = 0.5f * float((0xc8643210u >> ((code & 7) * 4)) & 15);
        return (code & 8) != 0 ? -magnitude : magnitude;
    }

    // An exponent of 0 means a multiple of 2^-9, all ones NaN.
    INLINE float e4m3(uint code) const thread {
        const uint low = code & 0x7f;
        const uint magnitude =
            low < 8 ? as_type<uint>(float(low) * 0x1p-9f) : (low << 20) + (120u << 23);
        const uint nan = low == 0x7f ? 0x7fc00000u : 0;
        return as_type<float>(magnitude | nan | (code & 0x80) << 24);
    }

    // The scale of the block that holds element i. In e8m0 it is 2^(byte - 127), or 0 if that is
    // subnormal.
    INLINE float scale(uint i) const thread {
        const uint byte = scales[i / X_BLOCK];
        return X_E4M3_SCALE != 0 ? e4m3(byte) : as_type<float>(byte << 23);
    }

    INLINE float value(uint word, uint j) const thread {
        return X_BITS == 8 ? e4m3((word >> (8 * j)) & 255) : e2m1(word >> (4 * j));
    }

    INLINE float load(uint i) const thread {
        return scale(i) * value(codes[i / (32 / X_BITS)], i % (32 / X_BITS));
    }

    // i is a multiple of 8.
    INLINE Eight eight(uint i) const thread {
        Eight eight = {};
        const float scale = this->scale(i);
        UNROLL
        for (uint j = 0; j < 8; j += 1) {
            eight.at[j] =
                scale * value(codes[i / (32 / X_BITS) + j / (32 / X_BITS)], j % (32 / X_BITS));
        }
        return eight;
    }
};

using X_Format = Coded<X_Codes>;
