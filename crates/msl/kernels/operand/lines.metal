// The storage lines of an operand that is stored along K: row x of A, or column x of B, is line x.
// Every mainloop asks here, and only for rows and columns that exist.
// needs: INLINE
// offers: X_NEIGHBOURS x_line

// Whether neighbouring rows lie on neighbouring lines. Matrices straight from device memory need
// that.
constexpr constant bool X_NEIGHBOURS = true;

INLINE uint x_line(uint x) {
    return x;
}
