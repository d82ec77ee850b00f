// Operand in Q2_K (GGUF): blocks of 256 along K in sub-blocks of 16. A block is 16 bytes with a
// scale and a minimum of 4 bits each, 64 bytes of codes, four to a byte that lie 32 elements apart,
// and d and dmin in f16. Rows are whole blocks.
// needs: Coded INLINE Scaled
// provides: X_ARGUMENTS X_Codes X_Format X_VALUES x_blocks
// constants: X_SLOT

#define X_ARGUMENTS , device const uint *x_blocks [[buffer(X_SLOT)]]
#define X_VALUES x_blocks

struct X_Codes {
    device const uint *blocks;

    // Scale and minimum of the sub-block of element i.
    INLINE float2 scale(uint i) const thread {
        const uint first = i / 256 * 21;
        const uint sub = i / 16 % 16;
        const uint byte = blocks[first + sub / 4] >> (sub % 4 * 8);
        const half2 both = as_type<half2>(blocks[first + 20]);
        return float2(float(both.x) * float(byte & 15), float(both.y) * float((byte >> 4) & 15));
    }

    INLINE float code(uint i) const thread {
        const uint word = blocks[i / 256 * 21 + 4 + i / 128 % 2 * 8 + i % 32 / 4];
        return float((word >> (i % 4 * 8 + i / 32 % 4 * 2)) & 3);
    }
};

using X_Format = Coded<Scaled<X_Codes>>;
