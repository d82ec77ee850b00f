// The end of an epilogue: activation(y) + residual.
// needs: INLINE RESIDUAL_Format activation
// provides: ended
// constants: USE_RESIDUAL

// Ends with the residual's element `at`.
INLINE float ended(thread const RESIDUAL_Format &residual, uint at, float y) {
    y = activation(y);
    return USE_RESIDUAL ? y + residual.load(at) : y;
}
