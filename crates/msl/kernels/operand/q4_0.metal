// Operand in Q4_0 (GGUF): blocks of 18 bytes along K, a scale in f16 and 16 bytes of codes, whose
// low nibbles are elements 0 to 15 and whose high nibbles are elements 16 to 31. Rows are whole
// blocks, so the linear index gives the block.
// needs: Coded Eight INLINE UNROLL
// provides: X_ARGUMENTS X_Codes X_Format X_VALUES x_blocks
// constants: X_SLOT

#define X_ARGUMENTS , device const uchar *x_blocks [[buffer(X_SLOT)]]
#define X_VALUES x_blocks

struct X_Codes {
    device const uchar *blocks;

    // The scale of the block that begins at a byte.
    INLINE float scale(uint block) const thread {
        return float(as_type<half>(ushort(blocks[block] | blocks[block + 1] << 8)));
    }

    // The code of element i of the block that begins at a byte, less 8.
    INLINE float code(uint block, uint i) const thread {
        return float((blocks[block + 2 + i % 16] >> (i / 16 * 4)) & 15) - 8;
    }

    INLINE float load(uint i) const thread {
        const uint block = i / 32 * 18;
        return scale(block) * code(block, i % 32);
    }

    // i is a multiple of 8.
    INLINE Eight eight(uint i) const thread {
        Eight eight = {};
        const uint block = i / 32 * 18;
        const float scale = this->scale(block);
        UNROLL
        for (uint j = 0; j < 8; j += 1) {
            eight.at[j] = scale * code(block, i % 32 + j);
        }
        return eight;
    }
};

using X_Format = Coded<X_Codes>;
