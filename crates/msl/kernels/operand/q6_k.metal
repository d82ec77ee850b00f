// Operand in Q6_K (GGUF): blocks of 256 along K in sub-blocks of 16. A block is 128 bytes of low
// nibbles that lie 64 elements apart, 64 bytes of pairs of high bits that lie 32 apart, 16 signed
// scales; and d in f16, in a separate plane. Rows are whole blocks.
// needs: Coded INLINE Scaled
// provides: X_ARGUMENTS X_Codes X_Format X_VALUES x_blocks x_scales
// constants: X_PLANE_1_SLOT X_SLOT

#define X_ARGUMENTS \
    , device const uint *x_blocks [[buffer(X_SLOT)]], \
        device const half *x_scales [[buffer(X_PLANE_1_SLOT)]]
#define X_VALUES x_blocks, x_scales

struct X_Codes {
    device const uint *blocks;
    device const half *scales;

    // The scale of the sub-block of element i, and no minimum.
    INLINE float2 scale(uint i) const thread {
        const uint sub = i / 16 % 16;
        const uint word = blocks[i / 256 * 52 + 48 + sub / 4];
        return float2(float(scales[i / 256]) * float(char(word >> (sub % 4 * 8))), 0);
    }

    INLINE float code(uint i) const thread {
        const uint first = i / 256 * 52;
        const uint word = i % 32 / 4;
        const uint low = blocks[first + i / 128 % 2 * 16 + i / 32 % 2 * 8 + word]
            >> (i % 4 * 8 + i / 64 % 2 * 4);
        const uint high =
            blocks[first + 32 + i / 128 % 2 * 8 + word] >> (i % 4 * 8 + i / 32 % 4 * 2);
        return float((low & 15) | (high & 3) << 4) - 32.0f;
    }
};

using X_Format = Coded<Scaled<X_Codes>>;
