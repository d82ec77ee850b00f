// Operand in Q3_K (GGUF): blocks of 256 along K in sub-blocks of 16. A block is 32 bytes of high
// bits, 64 bytes of pairs of low bits that lie 32 elements apart, 12 bytes with 16 scales of 6
// bits; and d in f16, in a separate plane. Rows are whole blocks.
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

    // The scale of the sub-block of element i, and no minimum. The scale's low four bits are a
    // nibble of eight bytes, its high two in the four bytes after them.
    INLINE float2 scale(uint i) const thread {
        const uint first = i / 256 * 27 + 24;
        const uint sub = i / 16 % 16;
        const uint low = blocks[first + sub / 4 % 2] >> (sub % 4 * 8 + sub / 8 * 4);
        const uint high = blocks[first + 2] >> (sub % 4 * 8 + sub / 4 * 2);
        return float2(float(scales[i / 256]) * (float((low & 15) | (high & 3) << 4) - 32.0f), 0);
    }

    INLINE float code(uint i) const thread {
        const uint first = i / 256 * 27;
        const uint word = i % 32 / 4;
        const uint low = blocks[first + 8 + i / 128 % 2 * 8 + word] >> (i % 4 * 8 + i / 32 % 4 * 2);
        const uint high = blocks[first + word] >> (i % 4 * 8 + i / 32 % 8);
        return float((low & 3) | (high & 1) << 2) - 4.0f;
    }
};

using X_Format = Coded<Scaled<X_Codes>>;
