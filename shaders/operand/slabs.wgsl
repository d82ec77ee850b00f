// Where an operand that runs along K has its elements. A packed copy lies in slabs of some steps
// along K, one after the other, and each slab has all lines: so a slice of a tile is read from one
// place in memory.
// needs: nothing
// provides: X_SLAB x_apart x_at

// Steps along K of a slab; 0 if lines follow one another.
const X_SLAB: u32 = 0u; //param

// Distance of slabs with this number of lines, or of lines of `ld` elements.
fn x_apart(lines: u32, ld: u32) -> u32 {
    return select(ld, X_SLAB * lines, X_SLAB != 0u);
}

// A step of a line, where slabs, or lines, begin `ld` elements apart.
fn x_at(line: u32, step: u32, ld: u32) -> u32 {
    if X_SLAB != 0u {
        let slab = max(X_SLAB, 1u);
        return step / slab * ld + line * slab + step % slab;
    }
    return line * ld + step;
}
