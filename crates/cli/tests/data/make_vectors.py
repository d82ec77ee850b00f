"""Makes the small files that the tests of the program read.

    pip install "mlx[cpu]==0.32.4" gguf==0.19.0 safetensors==0.8.0 numpy==2.4.6
    python make_vectors.py           writes the files
    python make_vectors.py --check   fails if a file is not what it would write

mlx.safetensors, mlx_expected.safetensors: weights quantized and saved by MLX, and x·Wᵀ.
mlx_gather.safetensors: operands and results of MLX's gather_mm and gather_qmm, in whole numbers, so
    that all sums are exact: x [5,64], w [3,64,7], the same [3,7,64] in 4 bits (q), indices lhs and
    rhs. y.both has both, y.rhs and y.lhs one alone.
numpy_*.npy: operands as numpy saves them (f16, f64, big-endian, column-major, all versions of the
    format), and products in f64.

Whole models, each with an expected.safetensors: of each matrix W, `NAME.y` is x·Wᵀ in f64, where x
is the tensor `x.K` (3 rows, f32) and W what the packages dequantize, in f32. A stack of matrices
has a stack of products. No bias is added. The names of quantized matrices end with their format's.

mlx/model.safetensors: MLX's affine formats of all bits and groups, mxfp4, mxfp8, nvfp4, a stack of
    matrices, a bias, dense matrices of f32, f16 and bf16.
mlx/config.json: their formats, as mlx-lm writes them: one for all, and exceptions by layer.
mlx-sharded/: the same tensors in two files, with model.safetensors.index.json. The first file ends
    within a matrix: its codes lie in one file, its scales and biases in the other. Nothing is
    expected but what mlx/expected.safetensors says.
gguf/all.gguf: a tensor of every type that is read, a stack, F32, F16, BF16; metadata of all types.
gguf/v2.gguf: version 2 of the format. gguf/aligned.gguf: tensors at multiples of 64 bytes.
gguf/split-00001-of-00002.gguf, gguf/split-00002-of-00002.gguf: a model in two files.
    These have some of the tensors of all.gguf, under the same names.
gguf-recoded/model.gguf: the types of GGUF that become other formats when they are read. NVFP4 has
    its scale beside it, a stack of NVFP4 one for each matrix. The tensors `special.TYPE` have every
    kind of number as the scale of a block, and `special.nvfp4` every byte: `NAME.dequantized`.
gptq-*/model.safetensors, config.json: GPTQ of 4 and 8 bits, groups of 32 or (column) of all K. In
    the first version of the format zeros are stored less 1, in the second (v2) as they are. With
    act-order the groups are not consecutive. gptq-4bit's config.json tells no version, as at first.
awq/model.safetensors, config.json: AWQ of 4 bits, layout "gemm".
    The expected files of GPTQ and AWQ have the weights, too: `NAME.dequantized`.
"""

import filecmp
import json
import math
import pathlib
import sys
import tempfile

import mlx.core as mx
import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, GGUFWriter, quants
from numpy.lib import format as npy
from safetensors.numpy import save_file

HERE = pathlib.Path(__file__).parent
TYPES = {"f32": mx.float32, "f16": mx.float16, "bf16": mx.bfloat16}
mx.set_default_device(mx.cpu)


def save(folder, name, array, version=None):
    with open(folder / f"numpy_{name}.npy", "wb") as file:
        npy.write_array(file, array, version=version)


def save_json(path, value):
    path.write_text(json.dumps(value, indent=4) + "\n")


def normal(random, *shape):
    return random.standard_normal(shape).astype(np.float32)


def mlx_vectors(folder, random):
    saved, expected = {}, {}
    for name, dtype in TYPES.items():
        weights = mx.array(normal(random, 5, 192)).astype(dtype)
        codes, scales, biases = mx.quantize(weights, group_size=64, bits=4)
        saved |= {f"{name}.weight": codes, f"{name}.scales": scales, f"{name}.biases": biases}
        # Dequantized in f32, as the product is defined, whatever the type of the scales.
        pair = [part.astype(mx.float32) for part in [scales, biases]]
        wide = mx.dequantize(codes, *pair, group_size=64, bits=4)
        x = normal(random, 3, 192)
        expected[f"{name}.x"] = x
        expected[f"{name}.y"] = product(x, wide)
    mx.save_safetensors(str(folder / "mlx.safetensors"), saved)
    save_file(expected, folder / "mlx_expected.safetensors")


def gather_vectors(folder, random):
    x = mx.array(random.integers(-4, 5, (5, 64)).astype(np.float32))
    w = mx.array(random.integers(-9, 10, (3, 64, 7)).astype(np.float32))
    # 4 bits hold them: each group has 0 and 15.
    few = random.integers(0, 16, (3, 7, 64)).astype(np.float32)
    few[:, :, 0], few[:, :, 1] = 0, 15
    few = mx.array(few)
    codes, scales, biases = mx.quantize(few, group_size=64, bits=4)
    assert mx.array_equal(mx.dequantize(codes, scales, biases, group_size=64, bits=4), few)
    indices = {"lhs": [4, 0, 2, 2, 1, 4, 3, 0], "rhs": [2, 1, 0, 0, 2, 2, 1, 0]}
    both = {name: mx.array(all, dtype=mx.uint32) for name, all in indices.items()}
    rhs, lhs = both["rhs"][:5], both["lhs"][:3]
    saved = {"x": x, "w": w, **both, "rhs.five": rhs, "lhs.three": lhs}
    saved |= {"q.weight": codes, "q.scales": scales, "q.biases": biases}
    rows = x[:, None, :]
    for name, given in [
        ("both", {"lhs_indices": both["lhs"], "rhs_indices": both["rhs"]}),
        ("rhs", {"rhs_indices": rhs}),
        ("lhs", {"lhs_indices": lhs}),
    ]:
        saved[f"y.{name}"] = mx.gather_mm(rows, w, **given).squeeze(1)
        y = mx.gather_qmm(rows, codes, scales, biases, **given, group_size=64, bits=4)
        saved[f"qy.{name}"] = y.squeeze(1)
    mx.save_safetensors(str(folder / "mlx_gather.safetensors"), saved)


def numpy_vectors(folder, random):
    a, b = random.standard_normal((33, 29)), random.standard_normal((29, 31))
    save(folder, "a_f64", a)
    save(folder, "b_f64", b, version=(2, 0))
    save(folder, "ab_f64", product(a.astype(np.float32), b.T.astype(np.float32)))
    a, b = random.standard_normal((2, 7, 5)).astype(np.float16), normal(random, 5, 9).astype(">f4")
    save(folder, "a_f16_columns", np.asfortranarray(a), version=(3, 0))
    save(folder, "b_f32_big", b)
    save(folder, "ab_f32", np.array([product(part, b.T) for part in a]))


def product(x, weights):
    """x·Wᵀ in f64, each sum rounded once: numpy's own depends on the machine."""
    x, weights = np.float64(x), np.float64(np.array(weights))
    if weights.ndim == 3:
        return np.array([product(x, matrix) for matrix in weights])
    return np.array([[math.fsum(row * column) for column in weights] for row in x])


class Expected:
    """The operands and products of a model."""

    def __init__(self, random):
        self.random = random
        self.tensors, self.weights = {}, {}

    def add(self, name, weights):
        """Adds a product with W as the packages dequantize it, in f32."""
        k = weights.shape[-1]
        self.weights[name] = weights
        x = self.tensors.setdefault(f"x.{k}", normal(self.random, 3, k))
        self.tensors[f"{name}.y"] = product(x, weights)

    def save(self, folder):
        save_file(self.tensors, folder / "expected.safetensors")


def mlx_model(folder, random):
    expected, tensors = Expected(random), {}
    one_for_all = {"group_size": 64, "bits": 4, "mode": "affine"}
    quantization = dict(one_for_all)

    def add(name, dtype, options, shape=(6, 128)):
        weights = mx.array(normal(random, *shape)).astype(dtype)
        codes, scales, *biases = mx.quantize(weights, **options)
        tensors.update({f"{name}.weight": codes, f"{name}.scales": scales})
        tensors.update({f"{name}.biases": part for part in biases})
        if options != one_for_all:
            quantization[name] = options
        wide = [part.astype(mx.float32) for part in [scales, *biases]] if biases else [scales]
        expected.add(name, mx.dequantize(codes, *wide, **options, dtype=mx.float32))

    affine = [(bits, group, "f16") for bits in [2, 3, 4, 5, 6, 8] for group in [32, 64, 128]]
    affine += [(4, 64, "f32"), (4, 64, "bf16"), (3, 32, "f32"), (6, 128, "bf16")]
    for bits, group, suffix in affine:
        name = f"model.layers.0.affine-{bits}bit-g{group}-{suffix}"
        add(name, TYPES[suffix], {"group_size": group, "bits": bits, "mode": "affine"})
    for mode, group, bits in [("mxfp4", 32, 4), ("mxfp8", 32, 8), ("nvfp4", 16, 4)]:
        add(f"model.layers.1.{mode}", mx.float32, {"group_size": group, "bits": bits, "mode": mode})
    add("model.layers.1.switch_mlp.affine-4bit-g64-f16", mx.float16, one_for_all, (2, 6, 128))
    tensors["model.layers.0.affine-4bit-g64-f16.bias"] = mx.array(normal(random, 6))
    for suffix, dtype in TYPES.items():
        name = f"model.layers.2.{suffix}"
        tensors[f"{name}.weight"] = mx.array(normal(random, 6, 128)).astype(dtype)
        expected.add(name, tensors[f"{name}.weight"].astype(mx.float32))

    config = {"model_type": "llama", "quantization": quantization}
    config["quantization_config"] = quantization
    whole, sharded = folder / "mlx", folder / "mlx-sharded"
    for model in [whole, sharded]:
        model.mkdir(exist_ok=True)
        save_json(model / "config.json", config)
    save_mlx(whole / "model.safetensors", tensors)
    expected.save(whole)

    names = list(tensors)
    cut = names.index("model.layers.0.affine-5bit-g32-f16.scales")
    index = {"metadata": {"total_size": sum(tensor.nbytes for tensor in tensors.values())}}
    index["weight_map"] = {}
    for i, part in enumerate([names[:cut], names[cut:]], 1):
        file = f"model-{i:05}-of-00002.safetensors"
        save_mlx(sharded / file, {name: tensors[name] for name in part})
        index["weight_map"] |= {name: file for name in sorted(part)}
    save_json(sharded / "model.safetensors.index.json", index)


def save_mlx(path, tensors):
    mx.save_safetensors(str(path), tensors, metadata={"format": "mlx"})


def gguf_tensor(random, name, shape):
    """Random weights in a type: quantized by the package, or random blocks if it does not."""
    kind = GGMLQuantizationType[name]
    try:
        return quants.quantize(normal(random, *shape), kind)
    except NotImplementedError:
        elements, size = GGML_QUANT_SIZES[kind]
    blocks = random.integers(0, 256, (*shape[:-1], shape[-1] // elements, size), dtype=np.uint8)
    # The numbers in f16 of a block.
    at = {"IQ4_NL": [0], "IQ4_XS": [0], "Q2_K": [80, 82], "Q3_K": [108], "Q6_K": [208]}
    at = at.get(name, [0, 2])
    for offset in at:
        numbers = random.uniform(0.001, 0.01, blocks.shape[:-1]).astype(np.float16)
        blocks[..., offset : offset + 2] = numbers[..., None].view(np.uint8)
    return blocks.reshape(*shape[:-1], -1)


def gguf_models(folder, random):
    folder = folder / "gguf"
    folder.mkdir(exist_ok=True)
    expected, tensors = Expected(random), {}
    types = "Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q3_K Q4_K Q5_K Q6_K IQ4_NL MXFP4".split()
    shapes = {f"blk.0.{kind.lower()}": (kind, (6, 512)) for kind in types}
    shapes["blk.1.exps.q4_0"] = ("Q4_0", (2, 6, 64))
    shapes |= {f"blk.1.{kind.lower()}": (kind, (6, 64)) for kind in ["F32", "F16", "BF16"]}
    for name, (kind, shape) in shapes.items():
        number = GGMLQuantizationType[kind]
        tensors[f"{name}.weight"] = (gguf_tensor(random, kind, shape), number)
        expected.add(name, quants.dequantize(tensors[f"{name}.weight"][0], number).reshape(shape))
    tensors["output_norm.weight"] = (normal(random, 64), GGMLQuantizationType.F32)
    # With random numbers of its own, those of all later files stay.
    expected.random = np.random.default_rng(59)
    kind = GGMLQuantizationType.IQ4_XS
    data = gguf_tensor(expected.random, "IQ4_XS", (6, 512))
    tensors["blk.0.iq4_xs.weight"] = (data, kind)
    expected.add("blk.0.iq4_xs", quants.dequantize(data, kind))
    expected.save(folder)

    some = ["blk.0.q4_0", "blk.0.q6_k", "blk.1.f16"]
    write_gguf(folder / "all.gguf", tensors)
    write_gguf(folder / "aligned.gguf", {f"{n}.weight": tensors[f"{n}.weight"] for n in some}, 64)
    some = ["blk.0.q5_1", "blk.0.q8_0", "blk.0.q3_k", "blk.1.bf16"]
    some = {f"{name}.weight": tensors[f"{name}.weight"] for name in some}
    write_gguf(folder / "split.gguf", some, split_max_tensors=2)
    some = ["blk.0.q4_k", "blk.0.mxfp4", "blk.1.f32"]
    write_gguf(folder / "v2.gguf", {f"{n}.weight": tensors[f"{n}.weight"] for n in some})
    # Little-endian files of versions 2 and 3 differ in the number alone.
    with open(folder / "v2.gguf", "r+b") as file:
        file.seek(4)
        file.write((2).to_bytes(4, "little"))
    return expected


# A type that gguf 0.19 does not know.
Q2_0 = 42
GGML_QUANT_SIZES[Q2_0] = (64, 2 + 16)
RECODED = "IQ2_XXS IQ2_XS IQ2_S IQ3_XXS IQ3_S IQ1_S IQ1_M TQ1_0 TQ2_0 Q1_0".split()
RECODED = {name.lower(): GGMLQuantizationType[name] for name in RECODED} | {"q2_0": Q2_0}


def random_blocks(random, kind, shape, scales):
    """Blocks of random bits, with a number in f16 for each row of blocks."""
    elements, size = GGML_QUANT_SIZES[kind]
    blocks = random.integers(0, 256, (*shape[:-1], shape[-1] // elements, size), dtype=np.uint8)
    scales = np.broadcast_to(scales.view(np.uint16)[:, None], blocks.shape[:-1])
    at = {GGMLQuantizationType.TQ1_0: 52, GGMLQuantizationType.TQ2_0: 64}.get(kind, 0)
    if kind == GGMLQuantizationType.IQ1_M:
        # Four bits in each of four words.
        words = blocks[..., 48:].view("<u2")
        words[:] = words & 0x0FFF | (scales[..., None] >> [0, 4, 8, 12] & 15) << 12
    else:
        blocks[..., at : at + 2] = scales[..., None].astype("<u2").view(np.uint8)
    return blocks.reshape(*shape[:-1], -1)


def gguf_dequantized(data, kind):
    """What gguf decodes; the types that it does not decode are decoded by their definition."""
    if kind not in [GGMLQuantizationType.Q1_0, Q2_0]:
        return quants.dequantize(data, kind)
    blocks = data.reshape(-1, 18)
    scale = blocks[:, :2].copy().view(np.float16).astype(np.float32)
    bits = np.unpackbits(blocks[:, 2:], axis=-1, bitorder="little")
    if kind == Q2_0:
        codes = bits[:, 0::2] + 2.0 * bits[:, 1::2] - 1
    else:
        codes = 2.0 * bits - 1
    return (codes.astype(np.float32) * scale).reshape(data.shape[0], -1)


def recoded_model(folder):
    random, folder = np.random.default_rng(58), folder / "gguf-recoded"
    folder.mkdir(exist_ok=True)
    expected, tensors = Expected(random), {}
    special = np.array([0, 0x8000, 1, 0x83FF, 0x7BFF, 0xFC00, 0x7E00, 0x2345], dtype=np.uint16)
    for name, kind in RECODED.items():
        scales = random.uniform(0.001, 0.01, 6).astype(np.float16)
        data = random_blocks(random, kind, (6, 512), scales)
        tensors[f"blk.0.{name}.weight"] = (data, kind)
        expected.add(f"blk.0.{name}", gguf_dequantized(data, kind))
        data = random_blocks(random, kind, (len(special), 256), special)
        tensors[f"special.{name}.weight"] = (data, kind)
        with np.errstate(invalid="ignore"):
            expected.tensors[f"special.{name}.dequantized"] = gguf_dequantized(data, kind)

    kind, single = GGMLQuantizationType.NVFP4, GGMLQuantizationType.F32
    blocks = lambda *shape: random.integers(0, 256, (*shape, 36), dtype=np.uint8)
    data = blocks(16, 4)
    data[..., :4] = np.arange(256).reshape(16, 4, 4)
    data = data.reshape(16, -1)
    tensors["special.nvfp4.weight"] = (data, kind)
    expected.tensors["special.nvfp4.dequantized"] = quants.dequantize(data, kind)
    for name, data, scale in [
        ("blk.1.nvfp4", blocks(6, 8), [0.125]),
        ("blk.1.exps.nvfp4", blocks(2, 6, 1), [0.3, -0.7]),
    ]:
        data[..., :4] &= 0x3F
        data, scale = data.reshape(*data.shape[:-2], -1), np.array(scale, dtype=np.float32)
        tensors[f"{name}.weight"] = (data, kind)
        tensors[f"{name}.scale"] = (scale, single)
        tensors[f"{name}.input_scale"] = (np.array([3], dtype=np.float32), single)
        shape = (*data.shape[:-1], -1)
        weights = quants.dequantize(data.reshape(-1, data.shape[-1]), kind).reshape(shape)
        expected.add(name, weights * scale.reshape(-1, *[1] * (weights.ndim - 1)))
    expected.save(folder)
    write_gguf(folder / "model.gguf", tensors)
    return expected


def write_gguf(path, tensors, alignment=None, **options):
    writer = GGUFWriter(path, "llama", **options)
    writer.add_name("vectors")
    writer.add_quantization_version(2)
    writer.add_array("tokenizer.ggml.tokens", ["<s>", "a", "é"])
    writer.add_array("tokenizer.ggml.scores", [0.0, -1.0, -2.5])
    writer.add_array("vectors.nested", [[1, 2], [3]])
    for kind in ["int8", "uint16", "int16", "int32", "uint64", "int64", "float32", "float64"]:
        getattr(writer, f"add_{kind}")(f"vectors.{kind}", 3)
    writer.add_bool("vectors.bool", True)
    writer.add_uint8("vectors.uint8", 255)
    if alignment:
        writer.add_custom_alignment(alignment)
    for name, (data, kind) in tensors.items():
        writer.add_tensor(name, data, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def zero_points(weights, group_of, bits):
    """Of w ≈ scale · (code - zero): codes [n, k], scales [groups, n], zeros [groups, n], w."""
    most, groups = 2**bits - 1, group_of.max() + 1
    in_group = [weights[:, group_of == group] for group in range(groups)]
    low = np.array([np.minimum(part.min(axis=1), 0) for part in in_group])
    high = np.array([np.maximum(part.max(axis=1), 0) for part in in_group])
    scales = ((high - low) / most).astype(np.float16)
    zeros = np.rint(-low / scales.astype(np.float32)).clip(0, most).astype(np.uint32)
    codes = np.rint(weights / scales[group_of].T.astype(np.float32)) + zeros[group_of].T
    codes = codes.clip(0, most).astype(np.uint32)
    offsets = codes.astype(np.float32) - zeros[group_of].T.astype(np.float32)
    return codes, scales, zeros, scales[group_of].T.astype(np.float32) * offsets


def packed(codes, bits, axis, order=None):
    """Words of codes along an axis, the first in the lowest bits, or in another order."""
    per_word = 32 // bits
    codes = np.moveaxis(codes.astype(np.uint32), axis, -1)
    fields = codes.reshape(*codes.shape[:-1], -1, per_word)[..., order or range(per_word)]
    words = np.bitwise_or.reduce(fields << (bits * np.arange(per_word, dtype=np.uint32)), axis=-1)
    return np.ascontiguousarray(np.moveaxis(words, -1, axis)).view(np.int32)


def hugging_face(folder, name, random, quantization, tensors, dequantized):
    """Saves a model of one quantized matrix."""
    model, prefix = folder / name, "model.layers.0.self_attn.q_proj"
    model.mkdir(exist_ok=True)
    saved = {f"{prefix}.{leaf}": tensor for leaf, tensor in tensors.items()}
    saved["model.norm.weight"] = np.ones(dequantized.shape[1], dtype=np.float16)
    save_file(saved, model / "model.safetensors", metadata={"format": "pt"})
    config = {"model_type": "llama", "torch_dtype": "float16"}
    save_json(model / "config.json", config | {"quantization_config": quantization})
    expected = Expected(random)
    expected.add(prefix, dequantized)
    expected.tensors[f"{prefix}.dequantized"] = dequantized
    expected.save(model)


def zero_point_weights(random, n, k):
    """Normal weights; the first row is positive, its zeros are 0, the second negative."""
    weights = normal(random, n, k) * 0.05
    weights[0], weights[1] = np.abs(weights[0]), -np.abs(weights[1])
    return weights


def gptq_model(folder, random, name, bits, group, act_order, version):
    n, k = 32, 64
    group_of = np.arange(k) // (k if group == -1 else group)
    if act_order:
        group_of = group_of[random.permutation(k)]
    weights = zero_point_weights(random, n, k)
    if version == 1:
        weights[0] = -weights[0]  # a zero of 0 cannot be stored less 1
    codes, scales, zeros, dequantized = zero_points(weights, group_of, bits)
    tensors = {
        "qweight": packed(codes.T, bits, 0),
        "qzeros": packed(zeros - (version == 1), bits, 1),
        "scales": scales,
        "g_idx": group_of.astype(np.int32),
        "bias": np.zeros(n, dtype=np.float16),
    }
    assert zeros.min() >= (version == 1)
    quantization = {
        "bits": bits, "group_size": group, "damp_percent": 0.1, "desc_act": act_order,
        "static_groups": False, "sym": False, "true_sequential": True, "quant_method": "gptq",
    }  # fmt: skip
    if name != "gptq-4bit":
        quantization["checkpoint_format"] = "gptq" if version == 1 else "gptq_v2"
    hugging_face(folder, name, random, quantization, tensors, dequantized)


def awq_model(folder, random):
    n, k, group = 32, 64, 32
    weights = zero_point_weights(random, n, k)
    codes, scales, zeros, dequantized = zero_points(weights, np.arange(k) // group, 4)
    order = [0, 2, 4, 6, 1, 3, 5, 7]
    tensors = {
        "qweight": packed(codes.T, 4, 1, order),
        "qzeros": packed(zeros, 4, 1, order),
        "scales": scales,
    }
    quantization = {
        "quant_method": "awq", "zero_point": True, "group_size": group, "bits": 4,
        "version": "gemm", "modules_to_not_convert": None,
    }  # fmt: skip
    hugging_face(folder, "awq", random, quantization, tensors, dequantized)


def make(folder):
    random = np.random.default_rng(20)
    mlx_vectors(folder, random)
    numpy_vectors(folder, random)
    mlx_model(folder, random)
    gguf_models(folder, random)
    recoded_model(folder)
    for name, bits, act_order, version in [
        *[("gptq-4bit", 4, False, 1), ("gptq-4bit-act-order", 4, True, 1)],
        *[("gptq-8bit", 8, False, 1), ("gptq-8bit-act-order", 8, True, 1)],
        *[("gptq-4bit-v2", 4, False, 2), ("gptq-4bit-v2-act-order", 4, True, 2)],
        ("gptq-8bit-v2-act-order", 8, True, 2),
    ]:
        gptq_model(folder, random, name, bits, 32, act_order, version)
    gptq_model(folder, random, "gptq-4bit-column", 4, -1, False, 1)
    awq_model(folder, random)
    gather_vectors(folder, random)


def files(folder):
    names = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return {str(name) for name in names if name.suffix not in [".py", ".pyc"]}


def check():
    with tempfile.TemporaryDirectory() as made:
        made = pathlib.Path(made)
        make(made)
        ours, theirs = files(HERE), files(made)
        same, *_ = filecmp.cmpfiles(HERE, made, ours & theirs, shallow=False)
    if wrong := sorted((ours | theirs) - set(same)):
        sys.exit(f"these files are not what the packages make: {' '.join(wrong)}")


if __name__ == "__main__":
    check() if sys.argv[1:] == ["--check"] else make(HERE)
