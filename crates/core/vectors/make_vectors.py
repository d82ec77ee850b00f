"""Writes test vectors for each quantized format, made by its reference implementation on the CPU.

    pip install "mlx[cpu]==0.32.4" gguf==0.19.0 numpy
    python make_vectors.py

Each file holds one matrix [n, k], little-endian, without padding:

    u32 n, u32 k, u32 number of planes, u32 bytes of each plane
    u32 flags; bit 0: the planes are the quantized weights, so quantize must return them bit for bit
    f32 weights [n, k]; all zero if bit 0 is clear
    the planes, one after the other
    f32 dequantized weights [n, k], computed in f32

Planes of affine: codes (u32), scales and biases in the weights' type; of mxfp4: codes (u32) and
scales (u8); of q8_0 and q4_0: blocks. Affine weights are rounded to their type, then widened.
"""

from pathlib import Path

import mlx.core as mx
import numpy as np
from gguf import GGMLQuantizationType, quants

K = 128
mx.set_default_device(mx.cpu)


def common_rows(rng, largest, smallest):
    """Cases for every format, f32 [n, K], from about `smallest` to `largest` in absolute value."""
    normal = lambda count: rng.standard_normal((count, K)).astype(np.float32)
    ramp = np.arange(K, dtype=np.float32) % 16
    ones = np.ones(K, dtype=np.float32)
    lone = np.zeros(K, dtype=np.float32)
    lone[[63, 64]] = [0.7, -0.7]
    outlier = normal(1)[0]
    outlier[[3, 100]] = [1000, -1000]
    return [
        *normal(8), *normal(2) * 0.02, *normal(1) + 3, *-np.abs(normal(2)), *np.abs(normal(2)),
        *[0 * ones, ones, -2.5 * ones, 0.1 * ones, 1e-7 * ones],
        *[ramp, -ramp, ramp - 8, ramp[::-1] / 16, ramp * 0.5 + 0.25, ramp - 4.5],
        *[outlier, lone, rng.uniform(0.9, 1.0, K), rng.integers(-8, 8, K)],
        *normal(2).clip(-4, 4) / 8 * largest, *normal(2) * smallest, *normal(1) * 1e-6,
    ]


def blocks_with_maxima(rng, maxima):
    """Rows of random blocks of 32; each block's largest element has one of the `maxima`."""
    maxima = np.asarray(maxima, dtype=np.float32)
    blocks = rng.uniform(-0.99, 0.99, (len(maxima), 32)) * np.abs(maxima)[:, None]
    blocks[np.arange(len(maxima)), rng.integers(0, 32, len(maxima))] = maxima
    return blocks.reshape(-1, K)


def mxfp4_rows(rng):
    """The largest elements around 6 * 2^n, where the scale changes, and elements around ties."""
    six = 6 * 2.0 ** np.array([-127, -126, -100, -1, 0, 1, 100, 124], dtype=np.float32)
    maxima = [np.nextafter(six, np.float32(0)), six, np.nextafter(six, np.float32(np.inf))]
    maxima += [[6.01 * 2.0**-128, 5.1 * 2.0**-127, -4.5 * 2.0**-127, 2.9e38]]  # scales 0 and 253
    ties = np.array([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5], dtype=np.float32)
    below, above = np.nextafter(ties, np.float32(0)), np.nextafter(ties, np.float32(9))
    block = np.concatenate([below, ties, above, [6, 4, 3, 2, 1.5, 1, 0.5, 0.1, -0.1, 0.0, -0.0]])
    blocks = [2.0**n * sign * block for n in [0, -100, 124, -127] for sign in [1, -1]]
    underflow = 2.0**-149 * rng.integers(-3, 4, K)  # largest / 6 rounds to zero
    rows = [*blocks_with_maxima(rng, np.concatenate(maxima)), *np.reshape(blocks, (-1, K))]
    return rows + [np.full(K, -0.0), underflow]


def gguf_rows(rng, levels):
    """Scales d = largest / levels around f16 ties and limits; elements halfway between codes."""
    tiny = np.array([3, 2.5, 2, 1.5, 1, 0.75, 0.5, 0.25]) * 2.0**-24  # subnormal in f16
    odd = [1 + 2.0**-11, 1 + 3 * 2.0**-11, 1 + 2.0**-11 + 2.0**-20, 1 + 2.0**-11 - 2.0**-20]
    limits = [65504, 65519, 2.0**-14, 2.0**-14 * (1 - 2.0**-11)]
    d = np.concatenate([tiny, odd, limits]) * levels
    halves = (np.arange(K) % 32 - 16) / 2.0  # -8 to 7.5
    far = np.arange(K) - 63.5
    far[::32] = levels
    same = np.tile([1.0, -1.0, 0.5, -0.5], 32)  # of two largest, the first gives the sign
    rows = [*blocks_with_maxima(rng, np.concatenate([d, -d])), rng.standard_normal(K) * 1e-36]
    return rows + [halves, -halves, halves * 1.3, far, far * 1.3, same, -same]


def write(name, quantized, weights, planes, dequantized):
    """Writes one file; `weights` and `dequantized` are f32 [n, k], `planes` are arrays."""
    weights, dequantized = np.array(weights), np.array(dequantized)
    planes = [np.ascontiguousarray(plane).tobytes() for plane in planes]
    assert weights.dtype == dequantized.dtype == np.float32 and weights.shape == dequantized.shape
    assert np.isfinite(weights).all() and np.isfinite(dequantized).all(), name
    header = [*weights.shape, len(planes), *map(len, planes), int(quantized)]
    parts = [np.array(header, dtype="<u4").tobytes(), weights.tobytes(), *planes]
    Path(__file__).with_name(f"{name}.bin").write_bytes(b"".join([*parts, dequantized.tobytes()]))


def affine(bits, group, suffix, dtype, largest, smallest):
    rows = [*common_rows(np.random.default_rng(64), largest, smallest), np.full(K, -0.0)]
    weights = mx.array(np.array(rows, dtype=np.float32)).astype(dtype)
    codes, *pair = mx.quantize(weights, group_size=group, bits=bits)
    wide = [part.astype(mx.float32) for part in pair]
    dequantized = mx.dequantize(codes, *wide, group_size=group, bits=bits)
    stored = [part if dtype == mx.float32 else part.view(mx.uint16) for part in pair]
    planes = map(np.array, [codes, *stored])
    weights = weights.astype(mx.float32)
    write(f"affine-{bits}bit-g{group}-{suffix}", True, weights, planes, dequantized)


def mxfp4():
    rng = np.random.default_rng(4)
    weights = np.array(common_rows(rng, 3e38, 1e-37) + mxfp4_rows(rng), dtype=np.float32)
    planes = mx.quantize(mx.array(weights), mode="mxfp4")
    dequantized = mx.dequantize(*planes, mode="mxfp4", dtype=mx.float32)
    write("mxfp4", True, weights, map(np.array, planes), dequantized)
    # Without the multiples of 8, which keeps the file small; 253 and 254 without infinite values.
    scales = np.array([s for s in range(255) if s == 0 or s % 8], dtype=np.uint8)
    finite = np.select([scales == 254, scales == 253], [3, 5], 7)[:, None]
    codes = np.array([rng.permutation(np.arange(32) % 16) for _ in scales], dtype=np.uint8)
    codes = codes & 8 | np.minimum(codes & 7, finite).astype(np.uint8)
    words = (codes[:, ::2] | codes[:, 1::2] << 4).reshape(-1, K // 2).view("<u4")
    planes = [words, scales.reshape(-1, K // 32)]
    dequantized = mx.dequantize(*map(mx.array, planes), mode="mxfp4", dtype=mx.float32)
    write("mxfp4-raw", False, np.zeros(dequantized.shape, np.float32), planes, dequantized)


def gguf(name, kind, levels):
    rng = np.random.default_rng(levels)
    rows = common_rows(rng, 65504 * levels, 1e-7) + gguf_rows(rng, levels)
    rows += [np.full(K, -0.0)] if name == "q8_0" else []  # for q4_0, gguf and ggml differ here
    weights = np.array(rows, dtype=np.float32)
    blocks = quants.quantize(weights, kind)
    write(name, True, weights, [blocks], quants.dequantize(blocks, kind))
    blocks = rng.integers(0, 256, (16 * K // 32, blocks.shape[1] // (K // 32)), dtype=np.uint8)
    d = (rng.standard_normal(len(blocks)) * 0.05).astype(np.float16)
    d[:8] = [0, -0.0, 1, -1, 65504, -65504, 2.0**-24, -(2.0**-14)]
    blocks[:, :2] = d[:, None].view(np.uint8)
    blocks = blocks.reshape(16, -1)
    dequantized = quants.dequantize(blocks, kind)
    write(f"{name}-raw", False, np.zeros_like(dequantized), [blocks], dequantized)


def main():
    for bits, group in [(4, 64), (8, 32)]:
        affine(bits, group, "f32", mx.float32, 3e38, 1e-41)
        affine(bits, group, "f16", mx.float16, 65504.0, 1e-7)
        affine(bits, group, "bf16", mx.bfloat16, 3e38, 1e-41)
    mxfp4()
    gguf("q8_0", GGMLQuantizationType.Q8_0, 127)
    gguf("q4_0", GGMLQuantizationType.Q4_0, 8)


if __name__ == "__main__":
    main()
