"""Times MLX's product of f16 rows and square 4-bit weights.

    python3 mlx_bench.py ROWS WIDTH

Prints JSON: version, device, and seconds of one product (median, least, greatest). The weights are
quantized in groups of 64, and rotate among sets that together exceed the caches. Many products are
evaluated together; what one such evaluation costs beside them is subtracted.
"""

import json
import statistics
import sys
import time

import mlx.core as mx

ROTATED_BYTES = 256e6
MOST_SETS = 256
# Seconds: of one sample, and of work before the first, as in the bench.
SAMPLE = 0.1
WARM_UP = 0.5
SAMPLES = 9

rows, width = map(int, sys.argv[1:])
sets = max(1, min(MOST_SETS, int(ROTATED_BYTES / (width * width * 0.5625))))


def weights():
    """Random weights [N, K]: packed, scales, biases."""
    weights = mx.random.uniform(-1, 1, (width, width)).astype(mx.float16)
    return mx.quantize(weights, group_size=64, bits=4)


def seconds(count, inputs, x):
    """Of one evaluation of so many products."""
    start = time.perf_counter()
    products = []
    for i in range(count):
        w, scales, biases = inputs[i % len(inputs)]
        product = mx.quantized_matmul(x, w, scales, biases, transpose=True, group_size=64, bits=4)
        products.append(product)
    mx.eval(products)
    return time.perf_counter() - start


x = mx.random.uniform(-1, 1, (rows, width)).astype(mx.float16)
inputs = [weights() for _ in range(sets)]
mx.eval(x, inputs)
seconds(1, inputs, x)
once = max(seconds(11, inputs, x) - seconds(1, inputs, x), 1e-6) / 10
count = max(2, min(2000, int(SAMPLE / once)))
begin = time.perf_counter()
while time.perf_counter() - begin < WARM_UP:
    seconds(count, inputs, x)
samples = [(seconds(1 + count, inputs, x) - seconds(1, inputs, x)) / count for _ in range(SAMPLES)]
print(json.dumps({
    "version": mx.__version__,
    "device": str(mx.default_device()),
    "seconds": [statistics.median(samples), min(samples), max(samples)],
}))
