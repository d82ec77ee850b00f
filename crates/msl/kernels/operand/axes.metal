// An operand seen by its axes: k along the summed dimension, x along the other (M for A, N for B).
// needs: Eight X_Format X_VALUES params x_line
// provides: X_SIDE X_Side
// constants: X_K_CONTIGUOUS

struct X_Side {
    static constexpr constant bool ALONG_K = X_K_CONTIGUOUS != 0;
    using Format = X_Format;

    X_Format format;
    uint base;
    uint ld;

    // Index of an element.
    uint index(uint x, uint k) const {
        return base + (ALONG_K ? x_line(x) * ld + k : k * ld + x);
    }

    // Eight along K, of which n exist.
    Eight along_k(uint x, uint k, uint n) const {
        return format.eight(index(x, k), ALONG_K ? 1 : ld, n);
    }

    // Eight along the other axis, of which n exist.
    Eight across(uint x, uint k, uint n) const {
        if (!ALONG_K) {
            return format.eight(index(x, k), 1, n);
        }
        Eight eight = {};
#pragma unroll
        for (uint j = 0; j < 8; j += 1) {
            if (j < n) {
                eight.at[j] = load(x + j, k);
            }
        }
        return eight;
    }

    X_Format::Raw raw(uint x, uint k, uint n) const {
        return format.raw(index(x, k), ALONG_K ? 1 : ld, n);
    }

    float load(uint x, uint k) const {
        return format.load(index(x, k));
    }
};

#define X_SIDE(entry) X_Side{X_Format{X_VALUES}, params.x_offset + (entry) * params.x_batch, params.x_ld}
