"""Makes the small files that tests/vectors.rs reads.

Needs numpy, safetensors and mlx[cpu]; run it as

    python make_vectors.py

mlx.safetensors, mlx_expected.safetensors: weights quantized and saved by MLX, and x·Wᵀ in f64 on what MLX dequantizes.
numpy_*.npy: operands as numpy saves them (f16, f64, big-endian, column-major, all versions of the format), and products in f64.
"""

import pathlib

import mlx.core as mx
import numpy as np
from numpy.lib import format as npy
from safetensors.numpy import save_file

HERE = pathlib.Path(__file__).parent


def save(name, array, version=None):
    with open(HERE / f"numpy_{name}.npy", "wb") as file:
        npy.write_array(file, array, version=version)


def mlx_vectors(random):
    saved, expected = {}, {}
    for name, dtype in [("f32", mx.float32), ("f16", mx.float16), ("bf16", mx.bfloat16)]:
        weights = mx.array(random.standard_normal((5, 192)).astype(np.float32)).astype(dtype)
        codes, scales, biases = mx.quantize(weights, group_size=64, bits=4)
        saved |= {f"{name}.weight": codes, f"{name}.scales": scales, f"{name}.biases": biases}
        # Dequantized in f32, as the product is defined, whatever the type of the scales.
        wide = mx.dequantize(codes, scales.astype(mx.float32), biases.astype(mx.float32), group_size=64, bits=4)
        x = random.standard_normal((3, 192)).astype(np.float32)
        expected[f"{name}.x"] = x
        expected[f"{name}.y"] = x.astype(np.float64) @ np.array(wide).astype(np.float64).T
    mx.save_safetensors(str(HERE / "mlx.safetensors"), saved)
    save_file(expected, HERE / "mlx_expected.safetensors")


def numpy_vectors(random):
    a, b = random.standard_normal((33, 29)), random.standard_normal((29, 31))
    save("a_f64", a)
    save("b_f64", b, version=(2, 0))
    save("ab_f64", a.astype(np.float32).astype(np.float64) @ b.astype(np.float32).astype(np.float64))
    a, b = random.standard_normal((2, 7, 5)).astype(np.float16), random.standard_normal((5, 9)).astype(">f4")
    save("a_f16_columns", np.asfortranarray(a), version=(3, 0))
    save("b_f32_big", b)
    save("ab_f32", a.astype(np.float64) @ b.astype(np.float64))


if __name__ == "__main__":
    generator = np.random.default_rng(20)
    mlx_vectors(generator)
    numpy_vectors(generator)
