"""Times square products with numpy, beside `cargo xtask bench --adapter cpu --shapes SIZES`.

    OPENBLAS_NUM_THREADS=2 python3 numpy_bench.py 256 512 1024 2048

The median of --samples products in f32 is printed for each size, and the library behind numpy.
"""

import argparse
import statistics
import time

import numpy


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("sizes", type=int, nargs="+")
    parser.add_argument("--samples", type=int, default=15)
    given = parser.parse_args()

    config = numpy.show_config(mode="dicts")["Build Dependencies"]["blas"]
    print(f"numpy {numpy.__version__}, {config['name']} {config['version']}")
    random = numpy.random.default_rng(1)
    for size in given.sizes:
        a, b = (random.standard_normal((size, size), dtype=numpy.float32) for _ in range(2))
        c = a @ b
        seconds = []
        for _ in range(given.samples):
            start = time.perf_counter()
            numpy.matmul(a, b, out=c)
            seconds.append(time.perf_counter() - start)
        rate = 2 * size**3 / statistics.median(seconds) / 1e9
        print(f"{size}x{size}x{size}: {rate:.0f} GFLOP/s")


if __name__ == "__main__":
    main()
