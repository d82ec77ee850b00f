"""Makes the models of foreign layouts that the tests read, with PyTorch and compressed-tensors.

    pip install torch==2.15.0 compressed-tensors==0.20.1 safetensors==0.8.0
    python make_layouts.py           writes the files
    python make_layouts.py --check   fails if a file is not what it would write

Each folder has a model.safetensors, a config.json, and an expected.safetensors: the weights of each
matrix, dequantized in f32. The packages dequantize in the type of the scales, and would round to
bf16 or f16; so scales are widened before they are given to the packages.

compressed-tensors/: a matrix for each format and strategy, compressed and dequantized by the
    package. Its config.json is the package's, too. act-order, which the package has no longer, is
    made by the definition of its version 0.10: groups of sorted columns.
fp8/: DeepSeek's blocks of 128 by 128 and all other names and shapes of scales. Blocks are
    dequantized by compressed-tensors' FP8BlockDequantizer.
"""

import json

import remade
import torch
from compressed_tensors.compressors import BaseCompressor
from compressed_tensors.compressors.nvfp4.helpers import unpack_fp4_from_uint8
from compressed_tensors.compressors.pack_quantized.helpers import pack_to_int32
from compressed_tensors.entrypoints.convert.converters.fp8block_dequantizer import (
    FP8BlockDequantizer,
)
from compressed_tensors.quantization import (
    QuantizationArgs,
    QuantizationConfig,
    QuantizationScheme,
)
from compressed_tensors.quantization.lifecycle.forward import dequantize
from compressed_tensors.quantization.utils import (
    calculate_qparams,
    generate_gparam,
    maybe_pad_tensor_for_block_quant,
)
from safetensors.torch import save_file

F32, F16, BF16 = torch.float32, torch.float16, torch.bfloat16
E4M3, E5M2, E8M0 = torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e8m0fnu


def save(folder, name, tensors, expected, config):
    model = folder / name
    model.mkdir(exist_ok=True)
    tensors = {key: tensor.contiguous() for key, tensor in tensors.items()}
    save_file(tensors, model / "model.safetensors", metadata={"format": "pt"})
    save_file(expected, model / "expected.safetensors")
    config = {"model_type": "llama", "torch_dtype": "bfloat16", "quantization_config": config}
    (model / "config.json").write_text(json.dumps(config, indent=4) + "\n")


def parts(weight, args):
    """The weights that share a scale, in the last two dimensions."""
    n, k = weight.shape
    if args.strategy == "block":
        rows, columns = args.block_structure
        padded = maybe_pad_tensor_for_block_quant(weight, (rows, columns))
        padded = padded.reshape(padded.shape[0] // rows, rows, padded.shape[1] // columns, columns)
        return padded.transpose(1, 2)
    if args.strategy in ["group", "tensor_group"]:
        return weight.reshape(n, k // args.group_size, 1, args.group_size)
    return weight.reshape(n, 1, 1, k) if args.strategy == "channel" else weight.reshape(1, 1, n, k)


def matrix(name, weight, args, format, dtype, tensors, expected):
    """Compresses a matrix as llm-compressor does: scales of ranges, then the package."""
    scheme = QuantizationScheme(targets=[name], weights=args, format=format)
    if "int-" in format:
        dynamic = {"strategy": "token", "dynamic": True}
        scheme.input_activations = QuantizationArgs(num_bits=8, **dynamic)
    own = parts(weight, args)
    low, high = own.amin(dim=(-2, -1)), own.amax(dim=(-2, -1))
    state = {"weight": weight}
    if args.strategy == "tensor_group":
        state["weight_global_scale"] = generate_gparam(low.min(), high.max())
    scale, zero = calculate_qparams(
        low, high, args, global_scale=state.get("weight_global_scale")
    )
    if args.strategy == "tensor":
        scale, zero = scale.reshape(1), zero.reshape(1)
    scale = scale if args.strategy == "tensor_group" else scale.to(dtype)
    state |= {"weight_scale": scale, "weight_zero_point": zero}
    compressor = BaseCompressor.get_value_from_registry(format)
    stored = compressor.compress(state, scheme)
    tensors.update({f"{name}.{leaf}": tensor for leaf, tensor in stored.items()})
    if "fp4" in format:
        scale = compressor._decompress_scale(stored["weight_scale"], F32)
        codes = unpack_fp4_from_uint8(stored["weight_packed"], *weight.shape, dtype=F32)
        wide = dequantize(
            codes, scale, args=args, dtype=F32, global_scale=stored.get("weight_global_scale")
        )
    else:
        wide = dict(stored)
        if not format.startswith("mx"):
            wide["weight_scale"] = wide["weight_scale"].to(F32)
        wide = compressor.decompress(wide, scheme)["weight"].to(F32)
    assert (wide - weight).abs().max() < 0.5 * weight.abs().max(), name
    expected[f"{name}.dequantized"] = wide
    return scheme


def compressed_tensors(folder):
    torch.manual_seed(1)
    tensors, expected, groups = {}, {}, {}
    integers = [
        ("w4.group", 4, "group", 128, True, "pack-quantized", BF16, (24, 256)),
        ("w4.group.zeros", 4, "group", 32, False, "pack-quantized", F16, (24, 128)),
        ("w4.group.f32", 4, "group", 64, False, "pack-quantized", F32, (20, 128)),
        ("w4.group16", 4, "group", 16, False, "pack-quantized", BF16, (20, 80)),
        ("w4.channel", 4, "channel", None, False, "pack-quantized", BF16, (20, 96)),
        ("w4.tensor", 4, "tensor", None, True, "pack-quantized", BF16, (20, 96)),
        ("w2.group", 2, "group", 64, False, "pack-quantized", BF16, (20, 128)),
        ("w3.group", 3, "group", 32, False, "pack-quantized", BF16, (20, 96)),
        ("w5.group", 5, "group", 32, False, "pack-quantized", F16, (20, 96)),
        ("w6.channel", 6, "channel", None, True, "pack-quantized", F16, (20, 96)),
        ("w8.group", 8, "group", 128, True, "pack-quantized", BF16, (20, 128)),
        ("w8.channel", 8, "channel", None, False, "pack-quantized", F16, (20, 96)),
        ("int8.channel", 8, "channel", None, True, "int-quantized", BF16, (20, 128)),
        ("int8.channel.zeros", 8, "channel", None, False, "int-quantized", F16, (20, 96)),
        ("int8.tensor", 8, "tensor", None, True, "int-quantized", F32, (20, 96)),
        ("int8.group", 8, "group", 32, True, "naive-quantized", F32, (20, 96)),
    ]
    floats = [
        ("fp8.tensor", 8, "tensor", None, "float-quantized", BF16, (20, 96)),
        ("fp8.channel", 8, "channel", None, "float-quantized", F32, (20, 128)),
        ("fp8.block", 8, "block", None, "float-quantized", BF16, (40, 96)),
        ("nvfp4", 4, "tensor_group", 16, "nvfp4-pack-quantized", F32, (24, 96)),
        ("mxfp4", 4, "group", 32, "mxfp4-pack-quantized", F32, (24, 96)),
        ("mxfp8", 8, "group", 32, "mxfp8-quantized", F32, (24, 96)),
    ]
    integers = [("int", *row) for row in integers]
    floats = [("float", *row[:4], True, *row[4:]) for row in floats]
    for kind, name, bits, strategy, size, symmetric, format, dtype, shape in integers + floats:
        name = f"model.layers.0.{name}"
        block = [16, 32] if strategy == "block" else None
        args = QuantizationArgs(
            num_bits=bits, type=kind, strategy=strategy, group_size=size, symmetric=symmetric,
            block_structure=block, scale_dtype=torch.uint8 if format.startswith("mx") else None,
        )  # fmt: skip
        weight = torch.randn(shape, dtype=F32) * 0.05
        weight[1] = weight[1].abs()
        groups[name] = matrix(name, weight, args, format, dtype, tensors, expected)
    act_order(groups, tensors, expected)
    stack(groups, tensors, expected)
    config = QuantizationConfig(
        config_groups={f"group_{i}": scheme for i, scheme in enumerate(groups.values())},
        format="mixed-precision",
        quantization_status="compressed",
        ignore=["lm_head"],
    )
    config = json.loads(config.model_dump_json())
    save(folder, "compressed-tensors", tensors, expected, config)


def act_order(groups, tensors, expected):
    """A matrix of sorted columns, whose columns are put back where they were."""
    name, args = "model.layers.0.w4.act_order", QuantizationArgs(
        num_bits=4, strategy="group", group_size=32, symmetric=False
    )
    g_idx = (torch.arange(128) // 32)[torch.randperm(128)].to(torch.int32)
    order = torch.argsort(g_idx, stable=True)
    own, wide = {}, {}
    sorted_weights = torch.randn(20, 128) * 0.05
    groups[name] = matrix(name, sorted_weights, args, "pack-quantized", F16, own, wide)
    back = torch.argsort(order)
    codes = BaseCompressor.get_value_from_registry("pack-quantized")
    scheme = groups[name]
    state = {leaf.rsplit(".")[-1]: tensor for leaf, tensor in own.items()}
    state |= {"weight_scale": torch.ones_like(state["weight_scale"], dtype=F32)}
    state["weight_zero_point"] = torch.full_like(state["weight_zero_point"], -0x77777778)
    codes = codes.decompress(state, scheme)["weight"].to(torch.int8)
    own[f"{name}.weight_packed"] = pack_to_int32(codes[:, back].contiguous(), 4)
    own[f"{name}.weight_g_idx"] = g_idx
    tensors.update(own)
    expected[f"{name}.dequantized"] = wide[f"{name}.dequantized"][:, back].contiguous()


def stack(groups, tensors, expected):
    """Two matrices as one stack: the experts of a layer."""
    name, args = "model.layers.0.experts", QuantizationArgs(
        num_bits=4, strategy="group", group_size=32, symmetric=False
    )
    each = []
    for _ in range(2):
        own, wide = {}, {}
        weight = torch.randn(16, 64) * 0.05
        groups[name] = matrix(name, weight, args, "pack-quantized", BF16, own, wide)
        each.append((own, wide))
    for leaf in ["weight_packed", "weight_scale", "weight_zero_point"]:
        key = f"{name}.{leaf}"
        tensors[key] = torch.stack([own[key] for own, _ in each])
    tensors[f"{name}.weight_shape"] = torch.tensor([2, 16, 64])
    key = f"{name}.dequantized"
    expected[key] = torch.stack([wide[key] for _, wide in each])


def repeated(scale, weight):
    """The scale of each weight, of blocks that divide the weights."""
    scale = scale.to(F32)
    while scale.ndim < weight.ndim:
        scale = scale.unsqueeze(-1)
    for axis in range(weight.ndim):
        scale = scale.repeat_interleave(weight.shape[axis] // scale.shape[axis], axis)
    return scale


def fp8(folder):
    torch.manual_seed(2)
    tensors, expected = {}, {}

    def add(name, shape, leaf, scale, dtype=E4M3):
        weight = torch.randn(shape).mul(50).to(dtype)
        tensors[name + ("" if leaf.startswith("_") else ".weight")] = weight
        tensors[name + (leaf if leaf.startswith("_") else f".{leaf}")] = scale
        wide = weight.to(F32) * repeated(scale, weight)
        expected[f"{name}.dequantized"] = wide

    def positive(*shape, dtype=F32):
        return (torch.rand(shape) * 0.01 + 0.001).to(dtype)

    blocks = FP8BlockDequantizer(targets=["Linear"], dtype=F32)
    for name, shape, dtype in [("blocks", (136, 160), F32), ("blocks.bf16", (40, 256), BF16)]:
        weight = torch.randn(shape).mul(50).to(E4M3)
        scale = positive(*(-(-extent // 128) for extent in shape), dtype=dtype)
        tensors[f"{name}.weight"], tensors[f"{name}.weight_scale_inv"] = weight, scale
        given = {"w.weight": weight, "w.weight_scale_inv": scale}
        expected[f"{name}.dequantized"] = blocks.process(given)["w.weight"].contiguous()
    add("matrix", (20, 96), "weight_scale", positive())
    add("matrix.one", (20, 96), "weight_scale", positive(1, dtype=F16))
    add("rows", (20, 96), "weight_scale", positive(20))
    add("rows.one", (20, 128), "weight_scale", positive(20, 1, dtype=BF16))
    add("comfy", (20, 96), "scale_weight", positive(1))
    add("mistral", (20, 96), "qscale_weight", positive(dtype=BF16))
    add("e5m2", (20, 160), "weight_scale", positive(20), dtype=E5M2)
    powers = 2.0 ** torch.randint(-12, -4, (20, 3)).to(F32)
    add("mxfp8", (20, 96), "weight_scale", powers.to(E8M0))
    add("powers", (128, 256), "scale", powers[:1, :2].to(E8M0))
    add("stack", (2, 20, 96), "weight_scale", positive(2, 20, 1))
    add("stack.one", (2, 20, 96), "weight_scale", positive(2))
    add("experts.down_proj", (2, 128, 128), "_scale_inv", positive(2, 1, 1))
    config = {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic"}
    save(folder, "fp8", tensors, expected, config | {"weight_block_size": [128, 128]})


def make(folder):
    compressed_tensors(folder)
    fp8(folder)


if __name__ == "__main__":
    remade.main(make)
