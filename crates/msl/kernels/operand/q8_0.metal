// Operand in Q8_0 (GGUF): blocks of 34 bytes along K, a scale in f16 and 32 signed bytes. Rows are
// whole blocks, so the linear index gives the block.
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

    INLINE float load(uint i) const thread {
        const uint block = i / 32 * 34;
        return scale(block) * float(char(blocks[block + 2 + i % 32]));
    }

    // i is a multiple of 8.
    INLINE Eight eight(uint i) const thread {
        Eight eight = {};
        const uint block = i / 32 * 34;
        const float scale = this->scale(block);
        UNROLL
        for (uint j = 0; j < 8; j += 1) {
            eight.at[j] = scale * float(char(blocks[block + 2 + i % 32 + j]));
        }
        return eight;
    }
};

using X_Format = Coded<X_Codes>;
