// Operand in Q8_0 (GGUF): blocks of 34 bytes along K, a scale in f16 and 32 signed bytes. Rows are
// whole blocks, so the linear index gives the block.
// needs: Coded Eight
// provides: X_ARGUMENTS X_Codes X_Format X_VALUES x_blocks
// constants: X_SLOT

#define X_ARGUMENTS , device const uchar *x_blocks [[buffer(X_SLOT)]]
#define X_VALUES x_blocks

struct X_Codes {
    device const uchar *blocks;

    // The scale of the block that begins at a byte.
    float scale(uint block) const {
        return float(as_type<half>(ushort(blocks[block] | blocks[block + 1] << 8)));
    }

    float load(uint i) const {
        const uint block = i / 32 * 34;
        return scale(block) * float(char(blocks[block + 2 + i % 32]));
    }

    // i is a multiple of 8.
    Eight eight(uint i) const {
        Eight eight = {};
        const uint block = i / 32 * 34;
        const float scale = this->scale(block);
#pragma unroll
        for (uint j = 0; j < 8; j += 1) {
            eight.at[j] = scale * float(char(blocks[block + 2 + i % 32 + j]));
        }
        return eight;
    }
};

using X_Format = Coded<X_Codes>;
