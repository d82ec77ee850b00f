// The storage lines of an operand that is stored along K: row x of A, or column x of B, is line x.
// Every mainloop asks here, and only for rows and columns that exist.
// needs: nothing
// provides: x_line

fn x_line(x: u32) -> u32 {
    return x;
}
