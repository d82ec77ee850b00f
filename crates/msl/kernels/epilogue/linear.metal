// Epilogue: alpha · x + beta · C + bias, and its end: added.metal or gated.metal. C is read only if
// beta is not 0, which may be known on the device alone.
// needs: BIAS_Format C_Element INLINE Params RESIDUAL_Format ended
// provides: Epilogue
// constants: BIAS_ALONG_M USE_BETA USE_BIAS

struct Epilogue {
    constant Params *params;
    BIAS_Format bias;
    RESIDUAL_Format residual;
    device C_Element *c;

    // Applies the epilogue to element (row, col) of an entry of C, with the bias of a group.
    INLINE float apply(uint batch, uint group, uint row, uint col, float x) const thread {
        float y = params->alpha * x;
        if (USE_BETA && params->beta != 0.0f) {
            y += params->beta * float(c[index(batch, row, col)]);
        }
        if (USE_BIAS) {
            y += bias.load(params->bias_offset + group * params->bias_batch
                + (BIAS_ALONG_M ? row : col) * params->bias_ld);
        }
        return ended(residual, params->residual_offset + batch * params->residual_batch
            + row * params->residual_ld + col, y);
    }

    INLINE uint index(uint batch, uint row, uint col) const thread {
        return params->c_offset + batch * params->c_batch + row * params->c_ld + col;
    }
};
