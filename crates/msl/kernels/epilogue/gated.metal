// Epilogue with a gate, in place of linear.metal: y = (alpha · x + beta · C + bias) ·
// activation(gate), where the gate takes the residual's place.
// needs: BIAS_Format C_Element INLINE Params RESIDUAL_Format activation
// provides: Epilogue
// constants: BIAS_ALONG_M USE_BETA USE_BIAS

struct Epilogue {
    constant Params *params;
    BIAS_Format bias;
    RESIDUAL_Format residual;
    device C_Element *c;

    // Of element (row, col) of an entry of C, with the bias of a group.
    INLINE float apply(uint batch, uint group, uint row, uint col, float x) const thread {
        float y = params->alpha * x;
        if (USE_BETA && params->beta != 0.0f) {
            y += params->beta * float(c[index(batch, row, col)]);
        }
        if (USE_BIAS) {
            y += bias.load(params->bias_offset + group * params->bias_batch
                + (BIAS_ALONG_M ? row : col) * params->bias_ld);
        }
        return y * activation(residual.load(params->residual_offset
            + batch * params->residual_batch + row * params->residual_ld + col));
    }

    INLINE uint index(uint batch, uint row, uint col) const thread {
        return params->c_offset + batch * params->c_batch + row * params->c_ld + col;
    }
};
