"""Compares `tilewise matmul` with numpy in f64 on random files.

Needs numpy and safetensors. bf16, which numpy has not, is covered by the tests of the program. Run
it as

    cargo build --release -p tilewise-cli
    python numpy_agreement.py target/release/tilewise [--adapter NAME] [--cases N] [--seed S]

Each case draws shapes, batches, transposes, element types, file formats and an epilogue; the first
disagreement ends the run with the command line that shows it, and the files are kept.
"""

import argparse
import math
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from numpy.lib import format as npy
from safetensors.numpy import load_file, save_file

F32_ROUNDOFF = 2.0**-24
ROUNDOFF = {"f32": F32_ROUNDOFF, "f16": 2.0**-11}
# Half of the smallest subnormal, and what flushing subnormals may cost.
FLUSHED = {"f32": 2.0**-126, "f16": 2.0**-14}
INPUT_TYPES = ["<f4", "<f2", "<f8", ">f4", ">f2"]


def activation(name, x):
    if name == "relu":
        return np.maximum(x, 0)
    if name == "gelu":
        return x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    if name == "gelu-erf":
        return x / 2 * (1 + np.vectorize(math.erf, otypes=[float])(x / np.sqrt(2)))
    if name == "silu":
        return x / (1 + np.exp(-x))
    return x


class Case:
    """One product: its files, its command line, and what numpy makes of it."""

    def __init__(self, random, folder):
        self.random, self.folder, self.files = random, folder, 0
        sizes = random.choice([1, 2, 3, 7, 16, 33, 64, 97, 130], 3)
        self.m, self.n, self.k = (int(v) for v in sizes)
        if random.random() < 0.1:
            self.k = int(random.choice([0, 1024, 1031]))
        self.batch = int(random.choice([1, 1, 2, 5]))

    def array(self, shape, transposed=False):
        """Writes an array; gives what names it and its value in f64, as the program sees it."""
        stored = (*shape[:-2], shape[-1], shape[-2]) if transposed else shape
        dtype = self.random.choice(INPUT_TYPES)
        value = self.random.standard_normal(stored).astype(dtype)
        self.files += 1
        path = self.folder / f"{self.files}.npy"
        if dtype[0] == "<" and self.random.random() < 0.3:
            path = path.with_suffix(".safetensors")
            save_file({"other": np.zeros(3, np.int8), "x": np.ascontiguousarray(value)}, path)
            name = f"{path}#x"
        else:
            columns = self.random.random() < 0.3
            version = [None, (2, 0), (3, 0)][self.random.integers(3)]
            with open(path, "wb") as file:
                npy.write_array(
                    file, np.asfortranarray(value) if columns else value, version=version
                )
            name = str(path)
        seen_as = np.float32 if value.dtype.itemsize == 8 else value.dtype
        seen = value.astype(seen_as).astype(np.float64)
        return name, np.swapaxes(seen, -1, -2) if transposed else seen

    def operand(self, rows, cols, transposed):
        batched = self.batch > 1 and self.random.random() < 0.7
        return self.array((self.batch, rows, cols) if batched else (rows, cols), transposed)

    def draw(self, program, adapter):
        flip = (self.random.random(6) < 0.5).tolist()
        a_name, a = self.operand(self.m, self.k, flip[0])
        b_name, b = self.operand(self.k, self.n, flip[1])
        out_dtype = str(self.random.choice(["f32", "f16"]))
        output = self.folder / ("c.npy" if flip[2] else "c.safetensors")
        line = [program, "matmul", a_name, b_name, "-o", output]
        line += ["--out-dtype", out_dtype, "--check"]
        line += ["--transpose-a"] * flip[0] + ["--transpose-b"] * flip[1]
        line += ["--adapter", adapter] if adapter else []
        alpha = float(self.random.choice([1, -0.5, 0, 3]))
        line += ["--alpha", str(alpha)]
        terms = [alpha * (a @ b)]
        depth = 8 * np.sqrt(self.k) + 8
        sum_error = depth * F32_ROUNDOFF * (abs(alpha) * (np.abs(a) @ np.abs(b)))
        shape = terms[0].shape
        if flip[3]:
            beta, (name, old) = float(self.random.choice([1, -2])), self.array(shape)
            line += ["--beta", str(beta), "--c", name]
            terms.append(beta * old)
            # C0 is rounded to the type of C.
            sum_error = sum_error + ROUNDOFF[out_dtype] * np.abs(terms[-1])
            sum_error = sum_error + abs(beta) * FLUSHED[out_dtype]
        if flip[4]:
            along = str(self.random.choice(["m", "n"]))
            name, bias = self.array((shape[-2 if along == "m" else -1],))
            line += ["--bias", name, "--bias-along", along]
            terms.append(np.broadcast_to(bias[:, None] if along == "m" else bias, shape))
        function = str(self.random.choice(["none", "relu", "gelu", "gelu-erf", "silu"]))
        line += ["--activation", function]
        expected = activation(function, sum(terms))
        magnitude = sum(np.abs(term) for term in terms)
        if flip[5]:
            name, residual = self.array(shape)
            line += ["--residual", name]
            expected = expected + residual
            magnitude = magnitude + np.abs(residual)
        # Activations have a slope of at most 1.2 and are computed to some tens of roundings.
        bound = 1.2 * sum_error + 64 * F32_ROUNDOFF * (magnitude + 1)
        bound = bound + ROUNDOFF[out_dtype] * (np.abs(expected) + bound) + FLUSHED[out_dtype]
        return [str(word) for word in line], output, out_dtype, expected, bound


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--adapter")
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    random = np.random.default_rng(args.seed)
    worst = 0.0
    for number in range(args.cases):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="agreement-"))
        case = Case(random, folder)
        line, output, out_dtype, expected, bound = case.draw(args.program, args.adapter)
        done = subprocess.run(line, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"case {number}: {' '.join(line)}\n{done.stdout}{done.stderr}")
        found = np.load(output) if output.suffix == ".npy" else load_file(output)["c"]
        dtype = {"f32": np.float32, "f16": np.float16}[out_dtype]
        if found.shape != expected.shape or found.dtype != dtype:
            sys.exit(f"case {number}: {' '.join(line)}\n"
                     f"{found.dtype} {found.shape}, expected {out_dtype} {expected.shape}")
        ratio = np.abs(found - expected) / bound
        if not (ratio <= 1).all():
            sys.exit(f"case {number}: {' '.join(line)}\n"
                     f"an element is {np.nanmax(ratio)} times its bound off")
        worst = max(worst, ratio.max(initial=0))
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()
    print(f"{args.cases} products agree with numpy in f64; "
          f"the largest error is {worst:.3f} of its bound")


if __name__ == "__main__":
    main()
