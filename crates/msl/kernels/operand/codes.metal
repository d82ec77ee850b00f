// Operand in affine codes of 2, 3, 5 or 6 bits, in groups along K (MLX): element = scale · code +
// bias. A row of codes is one stream of bits, the first code in the lowest; a scale and a bias per
// group. Rows are whole groups, so the linear index gives byte and group.
// needs: Coded Eight INLINE Stored UNROLL
// provides: X_ARGUMENTS X_Codes X_Format X_Scale X_VALUES x_biases x_codes x_scales
// constants: X_BITS X_BLOCK X_PLANE_1_SLOT X_PLANE_2_SLOT X_SCALE X_SLOT

#define X_ARGUMENTS \
    , device const uint *x_codes [[buffer(X_SLOT)]], \
        device const X_Scale *x_scales [[buffer(X_PLANE_1_SLOT)]], \
        device const X_Scale *x_biases [[buffer(X_PLANE_2_SLOT)]]
#define X_VALUES reinterpret_cast<device const uchar *>(x_codes), x_scales, x_biases

using X_Scale = Stored<X_SCALE>::Type;

struct X_Codes {
    device const uchar *codes;
    device const X_Scale *scales;
    device const X_Scale *biases;

    // Eight codes are X_BITS bytes. i is a multiple of 8.
    INLINE ulong bits(uint i) const thread {
        ulong bits = 0;
        UNROLL
        for (uint j = 0; j < X_BITS; j += 1) {
            bits |= ulong(codes[i / 8 * X_BITS + j]) << (8 * j);
        }
        return bits;
    }

    INLINE float value(ulong bits, uint j, uint group) const thread {
        const float code = float(uint(bits >> (j * X_BITS)) & ((1u << X_BITS) - 1));
        return fma(float(scales[group]), code, float(biases[group]));
    }

    INLINE float load(uint i) const thread {
        return value(bits(i / 8 * 8), i % 8, i / X_BLOCK);
    }

    // i is a multiple of 8.
    INLINE Eight eight(uint i) const thread {
        Eight eight = {};
        const ulong codes = bits(i);
        UNROLL
        for (uint j = 0; j < 8; j += 1) {
            eight.at[j] = value(codes, j, i / X_BLOCK);
        }
        return eight;
    }
};

using X_Format = Coded<X_Codes>;
