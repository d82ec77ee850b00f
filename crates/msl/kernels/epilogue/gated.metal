// The end of an epilogue with a gate, which takes the residual's place: y · activation(gate).
// needs: INLINE RESIDUAL_Format activation
// provides: ended

// Ends with the gate's element `at`.
INLINE float ended(thread const RESIDUAL_Format &gate, uint at, float y) {
    return y * activation(gate.load(at));
}
