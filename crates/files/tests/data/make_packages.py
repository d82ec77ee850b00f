"""Makes models of foreign layouts that the tests read, each with the package that writes them.

    pip install torch==2.15.0 transformers==5.24.0 bitsandbytes==0.50.2 safetensors==0.8.0
    pip install --no-deps hqq==0.2.8.post1 termcolor tqdm auto-gptq==0.7.1 autoawq==0.2.9
    python make_packages.py           writes the files
    python make_packages.py --check   fails if a file is not what it would write

Each folder has a model.safetensors, a config.json, and an expected.safetensors: the weights of each
matrix, `NAME.dequantized`, in f32. The packages dequantize in the type of the scales, and would
round to bf16 or f16; so scales are widened before they are given to the packages.

gptq/, gptq-v2/: GPTQ of 2, 3 and 4 bits, packed and dequantized by auto-gptq. The second version
    stores zeros as they are, so its qzeros are those that auto-gptq packs for zeros + 1.
awq-gemv/, awq-gemv-fast/: packed by AutoAWQ, which has no products on a CPU. Expected is
    scale · (code - zero), and in awq-gemv-fast scale · code + its rounded -scale · zero.
bitsandbytes/: nf4 and fp4 of several blocks, with quantized scales and without, and int8.
    Dequantized by the package's PyTorch code: its C code for CPUs takes wrong scales of blocks that
    end within a row.
hqq/: HQQ of 8, 4, 3, 2 and 1 bits.
gpt-oss/: random codes and scales, dequantized by transformers' convert_moe_packed_tensors.
"""

import importlib.util
import json
import pathlib
import sys
import types

import bitsandbytes.functional as bnb
import remade
import torch
from bitsandbytes.backends.default.ops import _dequantize_4bit_compute
from hqq.core.quantize import BaseQuantizeConfig, HQQLinear, Quantizer
from safetensors.torch import save_file
from transformers.integrations.mxfp4 import convert_moe_packed_tensors

F32, F16, BF16 = torch.float32, torch.float16, torch.bfloat16


def module(package, path):
    """A file of a package, without the others, which need a GPU or more packages."""
    if package not in sys.modules:
        root = pathlib.Path(importlib.util.find_spec(package).origin).parent
        sys.modules[package] = types.ModuleType(package)
        sys.modules[package].__path__ = [str(root)]
    file = pathlib.Path(sys.modules[package].__path__[0]) / path
    spec = importlib.util.spec_from_file_location(file.stem, file)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def save(folder, name, tensors, expected, config):
    model = folder / name
    model.mkdir(exist_ok=True)
    tensors = {key: tensor.detach().contiguous() for key, tensor in tensors.items()}
    save_file(tensors, model / "model.safetensors", metadata={"format": "pt"})
    expected = {f"{key}.dequantized": tensor.contiguous() for key, tensor in expected.items()}
    save_file(expected, model / "expected.safetensors")
    config = {"model_type": "llama", "torch_dtype": "float16", "quantization_config": config}
    (model / "config.json").write_text(json.dumps(config, indent=4) + "\n")


def linear(weight):
    n, k = weight.shape
    made = torch.nn.Linear(k, n, bias=False)
    made.weight.data = weight
    return made


def asymmetric(n, k, bits, group_of, least=0):
    """Random codes, scales and zeros, and the weights that they are."""
    groups = int(group_of.max()) + 1
    codes = torch.randint(0, 2**bits, (n, k)).to(F32)
    zeros = torch.randint(least, 2**bits, (n, groups)).to(F32)
    scales = (torch.rand(n, groups) * 0.01 + 0.001).to(F16).to(F32)
    return codes, scales, zeros, scales[:, group_of] * (codes - zeros[:, group_of])


def gptq(folder):
    torch.manual_seed(3)
    qlinear = module("auto_gptq", "nn_modules/qlinear/qlinear_cuda.py")
    models = {"gptq": ({}, {}), "gptq-v2": ({}, {})}
    for bits, k, group, by_order in [
        *[(2, 96, 32, False), (3, 96, 32, False), (3, 256, 128, False), (2, 96, 16, False)],
        *[(3, 64, 16, False), (4, 96, 16, False), (2, 96, 32, True), (3, 96, 32, True)],
        *[(3, 96, 16, True), (4, 96, 16, True), (3, 128, -1, False)],
    ]:
        n, size = 32, k if group == -1 else group
        group_of = torch.arange(k) // size
        name = f"{bits}bit.{'all' if group == -1 else group}"
        if by_order:
            group_of = group_of[torch.randperm(k)]
            name += ".order"
        _, scales, zeros, weight = asymmetric(n, k, bits, group_of, least=1)

        def packed(zeros):
            made = qlinear.QuantLinear(bits, size, k, n, False, weight_dtype=F32)
            made.pack(linear(weight), scales.clone(), zeros.clone(), group_of.to(torch.int32))
            return made

        first = packed(zeros)
        wide = first(torch.eye(k)).T
        assert torch.equal(wide, weight), name
        for version, qzeros in [("gptq", first.qzeros), ("gptq-v2", packed(zeros + 1).qzeros)]:
            tensors, expected = models[version]
            expected[name] = wide
            tensors |= {
                f"{name}.qweight": first.qweight, f"{name}.qzeros": qzeros,
                f"{name}.scales": first.scales.to(F16), f"{name}.g_idx": first.g_idx,
            }  # fmt: skip
    for name, (tensors, expected) in models.items():
        config = {"quant_method": "gptq", "bits": 3, "group_size": 32, "sym": False}
        config |= {"checkpoint_format": name.replace("-", "_"), "dynamic": {"4bit": {"bits": 4}}}
        save(folder, name, tensors, expected, config)


def awq(folder):
    torch.manual_seed(4)
    gemv = module("awq", "modules/linear/gemv.py").WQLinear_GEMV
    fast = module("awq", "modules/linear/gemv_fast.py").WQLinear_GEMVFast
    for name, layer, group, all_k in [
        ("awq-gemv", gemv, 64, [192, 1024]), ("awq-gemv-fast", fast, 32, [64, 320]),
    ]:  # fmt: skip
        tensors, expected = {}, {}
        for k in all_k:
            group_of = torch.arange(k) // group
            codes, scales, zeros, weight = asymmetric(16, k, 4, group_of)
            made = layer.from_linear(linear(weight), 4, group, scales=scales, zeros=zeros)
            tensors |= {f"k{k}.{leaf}": own for leaf, own in made.state_dict().items()}
            if layer is fast:
                scaled = made.qzeros[: zeros.shape[1]].T.to(F32)
                weight = scales[:, group_of] * codes + scaled[:, group_of]
            expected[f"k{k}"] = weight
        version = name.removeprefix("awq-").replace("-", "_")
        config = {"quant_method": "awq", "zero_point": True, "group_size": group, "bits": 4}
        save(folder, name, tensors, expected, config | {"version": version})


def bitsandbytes(folder):
    torch.manual_seed(5)
    tensors, expected = {}, {}
    for name, shape, dtype, block, nested, storage in [
        ("nf4", (6, 192), F32, 64, False, torch.uint8),
        ("nf4.nested", (66, 256), BF16, 64, True, torch.uint8),
        ("nf4.large", (5, 192), F16, 256, False, torch.uint8),
        ("nf4.stored", (5, 64), BF16, 64, True, BF16),
        ("nf4.stack", (2, 3, 64), BF16, 64, False, torch.uint8),
        ("fp4", (6, 192), F16, 64, False, torch.uint8),
        ("fp4.nested", (6, 192), F16, 128, True, torch.uint8),
    ]:
        options = {"blocksize": block, "quant_type": name[:3], "compress_statistics": nested}
        weight = torch.randn(shape).to(dtype)
        codes, state = bnb.quantize_4bit(weight, quant_storage=storage, **options)
        tensors[f"{name}.weight"] = codes
        saved = state.as_dict(packed=True).items()
        tensors |= {f"{name}.weight.{leaf}": tensor for leaf, tensor in saved}
        absmax = state.absmax
        if nested:
            absmax = bnb.dequantize_blockwise(absmax, state.state2) + state.offset
        codes = codes.view(torch.uint8).reshape(-1)
        wide = _dequantize_4bit_compute(codes, absmax, state.code, block, shape, F32)
        expected[name] = wide.reshape(shape)
    codes, scales, _ = bnb.int8_vectorwise_quant(torch.randn(7, 96).to(F16))
    tensors |= {"int8.weight": codes, "int8.SCB": scales}
    tensors["int8.weight_format"] = torch.tensor(0, dtype=torch.uint8)
    expected["int8"] = bnb.int8_vectorwise_dequant(codes, scales)
    config = {"quant_method": "bitsandbytes", "load_in_4bit": True, "load_in_8bit": False}
    config |= {"bnb_4bit_quant_type": "nf4", "bnb_4bit_use_double_quant": True}
    save(folder, "bitsandbytes", tensors, expected, config)


def hqq(folder):
    torch.manual_seed(6)
    tensors, expected = {}, {}
    for name, bits, shape, group, options in [
        ("8bit", 8, (6, 128), 64, {}),
        ("4bit", 4, (6, 192), 64, {}),
        ("4bit.float", 4, (6, 128), 32, {"view_as_float": True}),
        ("4bit.rows", 4, (8, 64), 128, {}),
        ("3bit", 3, (7, 192), 64, {}),
        ("2bit", 2, (8, 128), 32, {}),
        ("1bit", 1, (8, 128), 128, {}),
    ]:
        config = BaseQuantizeConfig(nbits=bits, group_size=group, axis=1, **options)
        made = HQQLinear(linear(torch.randn(shape)), config, compute_dtype=F16, device="cpu")
        saved = made.state_dict().items()
        tensors |= {f"{name}.{leaf}": own for leaf, own in saved if own is not None}
        meta = dict(made.meta)
        wide = {key: meta[key].to(F32) for key in ["scale", "zero"]}
        expected[name] = Quantizer.dequantize(made.W_q, meta | wide | {"compute_dtype": F32})
    weight_params = {"nbits": 4, "group_size": 64, "axis": 1}
    config = {"quant_method": "hqq", "quant_config": {"weight_quant_params": weight_params}}
    save(folder, "hqq", tensors, expected, config | {"skip_modules": ["lm_head"]})


def gpt_oss(folder):
    torch.manual_seed(7)
    tensors, expected = {}, {}
    for name, n, k in [("gate_up_proj", 12, 64), ("down_proj", 64, 96)]:
        prefix = f"model.layers.0.mlp.experts.{name}"
        blocks = torch.randint(0, 256, (2, n, k // 32, 16)).to(torch.uint8)
        scales = torch.randint(110, 130, (2, n, k // 32)).to(torch.uint8)
        scales[0, 0, 0], scales[1, 1, 1] = 0, 200
        tensors |= {f"{prefix}_blocks": blocks, f"{prefix}_scales": scales}
        tensors[f"{prefix}_bias"] = torch.randn(2, n).to(BF16)
        # The package transposes the matrices.
        expected[prefix] = convert_moe_packed_tensors(blocks, scales, dtype=F32).transpose(1, 2)
    config = {"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn"]}
    save(folder, "gpt-oss", tensors, expected, config)


def make(folder):
    for one in [gptq, awq, bitsandbytes, hqq, gpt_oss]:
        one(folder)


if __name__ == "__main__":
    remade.main(make)
