"""Opens in MLX what `tilewise convert` makes of models that other packages wrote.

Needs the packages of data/make_vectors.py. Run it as

    cargo build -p tilewise-cli
    python opens_in_mlx.py target/debug/tilewise

or by `TILEWISE_PYTHON=python cargo test -p tilewise-cli --test program mlx_opens`.

The models are the folders of test data that have the weights as the packages dequantize them, and
GGUF files, which are written anew. Each model becomes affine with 4 bits, then mxfp4. MLX must find
every matrix of the model in the new file, and decode each weight to the package's, within one scale
of its group: affine codes are one scale apart, and mxfp4's largest codes two. Affine scales are
rounded so that the group's largest weight is exact, and then its other end may lie up to a scale
beyond the last code. Matrices whose K is no multiple of 32 have no groups of 32 and are left out.
"""

import pathlib
import subprocess
import sys
import tempfile

import mlx.core as mx
import numpy as np
from safetensors.numpy import load_file

HERE = pathlib.Path(__file__).resolve().parent
GROUP = 32
FORMATS = {"affine-4bit-g32-f32": "affine", "mxfp4": "mxfp4"}

sys.path.append(str(HERE / "data"))
import make_vectors  # noqa: E402


def models(folder):
    """Each model, and its weights by name."""
    random = np.random.default_rng(0)
    yield folder / "gguf/all.gguf", make_vectors.gguf_models(folder, random).weights
    yield folder / "gguf-recoded/model.gguf", make_vectors.recoded_model(folder).weights
    for data in [HERE / "data", HERE.parents[1] / "files/tests/data"]:
        for config in sorted(data.glob("*/config.json")):
            expected = config.with_name("expected.safetensors")
            expected = load_file(expected) if expected.exists() else {}
            end = ".dequantized"
            weights = {k.removesuffix(end): v for k, v in expected.items() if k.endswith(end)}
            if weights:
                yield config.parent, weights


def largest_error(tensors, name, expected, mode):
    """The largest error of a matrix as MLX decodes it, in scales of the groups."""
    parts = [tensors.get(f"{name}.{part}") for part in ["weight", "scales", "biases"]]
    if parts[1] is None:
        sys.exit(f"{name}: it was not converted")
    found = mx.dequantize(*parts, group_size=GROUP, bits=4, mode=mode, dtype=mx.float32)
    scales = np.array(parts[1])
    scales = np.abs(scales) if mode == "affine" else np.exp2(scales.astype(np.float32) - 127)
    if f"{name}.order" in tensors:
        expected = expected[..., np.array(tensors[f"{name}.order"])]
    if found.shape != expected.shape:
        sys.exit(f"{name}: {found.shape}, expected {expected.shape}")
    # What is left above a scale are roundings of f32.
    error = np.abs(np.array(found, dtype=np.float64) - expected) - 1e-6 * np.abs(expected)
    return (error / np.repeat(scales, GROUP, axis=-1)).max()


def main():
    program, = sys.argv[1:]
    count, worst = 0, 0
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        output = folder / "converted.safetensors"
        for path, weights in models(folder):
            weights = {k: v for k, v in weights.items() if v.shape[-1] % GROUP == 0}
            for format, mode in FORMATS.items():
                line = [program, "convert", path, output, "--format", format]
                # Weights that are infinite have no codes.
                line += ["--skip", "special."] if "recoded" in str(path) else []
                done = subprocess.run(line, capture_output=True, text=True)
                if done.returncode:
                    sys.exit(f"{path} to {format}: {done.stderr}")
                tensors = mx.load(str(output))
                output.unlink()
                for name, expected in weights.items():
                    error = largest_error(tensors, name, expected, mode)
                    if not error <= 1:
                        sys.exit(f"{path}: {name} to {format}: {error} scales off")
                    count, worst = count + 1, max(worst, error)
    if not count:
        sys.exit("no matrix was opened")
    print(f"MLX opens {count} matrices; the largest error is {worst:.3f} of a scale")


if __name__ == "__main__":
    main()
