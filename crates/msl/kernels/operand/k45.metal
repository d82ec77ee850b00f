// Operand in Q4_K or Q5_K (GGUF): blocks of 256 along K in sub-blocks of 32. A block is d and dmin
// in f16, 12 bytes with 8 scales and 8 minima of 6 bits, 32 bytes of fifth bits in Q5_K, and 128
// bytes whose low nibbles are a sub-block and whose high ones the next. Rows are whole blocks.
// needs: Coded INLINE Scaled
// provides: X_ARGUMENTS X_Codes X_Format X_VALUES x_blocks
// constants: X_HIGH X_SLOT

#define X_ARGUMENTS , device const uint *x_blocks [[buffer(X_SLOT)]]
#define X_VALUES x_blocks

struct X_Codes {
    device const uint *blocks;

    INLINE static uint first(uint i) {
        return i / 256 * (36 + 8 * X_HIGH);
    }

    // Scale and minimum of the sub-block of element i.
    INLINE float2 scale(uint i) const thread {
        const uint block = first(i);
        const uint j = i / 32 % 8;
        const uint at = j % 4 * 8;
        const uint low = blocks[block + 1] >> at;
        const uint high = blocks[block + 2] >> at;
        uint scale = low & 63;
        uint least = high & 63;
        if (j >= 4) {
            const uint pair = blocks[block + 3] >> at;
            scale = (pair & 15) | ((low >> 6) & 3) << 4;
            least = ((pair >> 4) & 15) | ((high >> 6) & 3) << 4;
        }
        const half2 both = as_type<half2>(blocks[block]);
        return float2(float(both.x) * float(scale), float(both.y) * float(least));
    }

    INLINE float code(uint i) const thread {
        const uint block = first(i);
        const uint j = i / 32 % 8;
        const uint l = i % 32;
        uint code =
            (blocks[block + 4 + 8 * X_HIGH + j / 2 * 8 + l / 4] >> (l % 4 * 8 + j % 2 * 4)) & 15;
        if (X_HIGH != 0) {
            code |= ((blocks[block + 4 + l / 4] >> (l % 4 * 8 + j)) & 1) << 4;
        }
        return float(code);
    }
};

using X_Format = Coded<Scaled<X_Codes>>;
