// An operand seen by its axes: k along the summed dimension, x along the other (M for A, N for B).
// needs: Eight INLINE UNROLL X_Format X_VALUES params x_line
// provides: X_OPERAND X_Operand
// constants: X_K_CONTIGUOUS

struct X_Operand {
    static constexpr constant bool ALONG_K = X_K_CONTIGUOUS != 0;
    using Format = X_Format;

    X_Format format;
    uint base;
    uint ld;

    // Index of an element.
    INLINE uint index(uint x, uint k) const thread {
        return base + (ALONG_K ? x_line(x) * ld + k : k * ld + x);
    }

    // Eight along K, of which n exist.
    INLINE Eight along_k(uint x, uint k, uint n) const thread {
        return format.eight(index(x, k), ALONG_K ? 1 : ld, n);
    }

    // Eight along the other axis, of which n exist.
    INLINE Eight across(uint x, uint k, uint n) const thread {
        if (!ALONG_K) {
            return format.eight(index(x, k), 1, n);
        }
        Eight eight = {};
        UNROLL
        for (uint j = 0; j < 8; j += 1) {
            if (j < n) {
                eight.at[j] = load(x + j, k);
            }
        }
        return eight;
    }

    INLINE X_Format::Raw raw(uint x, uint k, uint n) const thread {
        return format.raw(index(x, k), ALONG_K ? 1 : ld, n);
    }

    INLINE float load(uint x, uint k) const thread {
        return format.load(index(x, k));
    }
};

#define X_OPERAND(entry) X_Operand{X_Format{X_VALUES}, params.x_offset + (entry) * params.x_batch, params.x_ld}
