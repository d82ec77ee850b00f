"""Makes grids.bin: the points of the grids that GGUF's types IQ1, IQ2 and IQ3 name by number.

    pip install gguf==0.19.0 numpy==2.4.6
    python make_grids.py           writes the file
    python make_grids.py --check   fails if the file is not what it would write

A point is 8 numbers of 3 levels, 2 bits each, or 4 numbers of 8 levels, 3 bits each; the first in
the lowest bits of a little-endian number of 16 bits. The levels are in grids.rs, and so is where
each grid begins. The grids follow each other in the order of GRIDS.
"""

import pathlib
import sys

import numpy as np
from gguf import quants

FILE = pathlib.Path(__file__).with_name("grids.bin")
GRIDS = [quants.IQ2_XXS, quants.IQ2_XS, quants.IQ2_S, quants.IQ1_S, quants.IQ3_XXS, quants.IQ3_S]


def points(kind):
    kind.init_grid()
    levels = [kind.grid_map.index(number) for number in kind.grid.astype(int).flat]
    levels = np.array(levels, dtype=np.uint16).reshape(kind.grid_shape)
    bits = 2 if kind.grid_shape[1] == 8 else 3
    shifts = bits * np.arange(kind.grid_shape[1], dtype=np.uint16)
    return np.bitwise_or.reduce(levels << shifts, axis=-1).astype("<u2").tobytes()


def signs_are_even():
    """The 8th sign of 7 makes their number even: no table is needed."""
    table = quants.IQ2_XXS.ksigns
    return all(byte == i | i.bit_count() % 2 << 7 for i, byte in enumerate(table))


if __name__ == "__main__":
    made = b"".join(points(kind) for kind in GRIDS)
    assert signs_are_even()
    if sys.argv[1:] != ["--check"]:
        FILE.write_bytes(made)
    elif FILE.read_bytes() != made:
        sys.exit("grids.bin is not what the package gives")
