"""Writes affine4_g64.bin: matrices quantized by MLX on its CPU, in 4 bits and groups of 64.

    pip install "mlx[cpu]==0.32.*" numpy
    python make_mlx_vectors.py

One matrix each for weights of f32, f16 and bf16; the rows are the cases below. The file is little-endian, without padding:
u32 n, u32 k, u32 bytes per element of the weights' type (16-bit types: 2, then f16 first), and then the weights, widened to f32,
the codes (u32), the scales and the biases in the weights' type, and the dequantized weights, computed in f32.
"""

from pathlib import Path

import mlx.core as mx
import numpy as np

K = 128  # two groups per row
mx.set_default_device(mx.cpu)


def rows(rng, largest, smallest):
    """The cases, f32 [n, K]; `largest` and `smallest` are positive normal numbers of the weights' type."""
    normal = lambda count: rng.standard_normal((count, K)).astype(np.float32)
    ramp = np.arange(K, dtype=np.float32) % 16
    ones = np.ones(K, dtype=np.float32)
    outlier = normal(1)[0]
    outlier[[3, 100]] = [1000, -1000]
    lone = np.zeros(K, dtype=np.float32)
    lone[[63, 64]] = [0.7, -0.7]
    return np.vstack([
        normal(8),
        normal(2) * 0.02,
        normal(1) + 3,
        -np.abs(normal(2)),
        np.abs(normal(2)),
        rng.uniform(0.9, 1.0, (1, K)),
        [0 * ones, -0 * ones, ones, -2.5 * ones, 0.1 * ones, 1e-7 * ones],
        [ramp, -ramp, ramp - 8, ramp[::-1] / 16, ramp * 0.5 + 0.25, ramp - 4.5],
        [outlier, lone],
        normal(2).clip(-4, 4) / 8 * largest,
        normal(2) * smallest,
        normal(1) * 1e-6,
        rng.integers(-8, 8, (1, K)),
    ]).astype(np.float32)


def main():
    rng = np.random.default_rng(64)
    with open(Path(__file__).with_name("affine4_g64.bin"), "wb") as out:
        for dtype, largest, smallest in [(mx.float32, 3e38, 1e-41), (mx.float16, 65504.0, 1e-7), (mx.bfloat16, 3e38, 1e-41)]:
            weights = mx.array(rows(rng, largest, smallest)).astype(dtype)
            codes, scales, biases = mx.quantize(weights, group_size=64, bits=4)
            wide = mx.dequantize(codes, scales.astype(mx.float32), biases.astype(mx.float32), group_size=64, bits=4)
            raw = (lambda x: x) if dtype == mx.float32 else (lambda x: x.view(mx.uint16))
            out.write(np.array([*weights.shape, dtype.size], dtype="<u4").tobytes())
            for part in [weights.astype(mx.float32), codes, raw(scales), raw(biases), wide]:
                out.write(np.array(part).tobytes())


if __name__ == "__main__":
    main()
