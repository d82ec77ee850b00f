"""Writes test vectors for each quantized format, made by its reference implementation on the CPU.

    pip install "mlx[cpu]==0.32.4" gguf==0.19.0 ml_dtypes==0.6.0 numpy==2.4.6
    python make_vectors.py           writes the files
    python make_vectors.py --check   fails if a file is not what it would write; exits with 77
                                     if the packages are missing, or of other versions

All numbers are little-endian, without padding. weights-NAME.bin holds weights that several formats
quantize:

    u32 n, u32 k, f32 weights [n, k]

FORMAT.bin holds a matrix [n, k] in a format:

    u32 n, u32 k
    u32 bytes of a text, the text: the NAMEs of the weights in its first rows, in their order
    f32 g: of nvfp4-factor, see below; else 0
    u32 number of parts, u32 bytes of each part, the parts
    u64 hashes [n]: FNV-1a of the bytes of each row after dequantizing, in f32, where every NaN
        counts as 0x7fc00000

The first rows are weights that are quantized: quantizing must return the same bits. The others are
codes and scales of which a quantizer makes few. A format of GGUF has the blocks of a file for its
part, any other format its planes. Weights for affine are rounded to the type of the scales, then
widened.

nvfp4-factor.bin is nvfp4 with g, the `global_scale` of MLX for the whole matrix. Its weight is

    value of its code · (value of its scale · factor),    factor = g / 2688

each step rounded to f32, and quantizing takes, in the same way:

    inverse = 2688 / g
    scale   = e4m3((largest / 6) · inverse)
    code    = e2m1((weight / scale) · inverse), of equally near codes the first
"""

import sys
from importlib import metadata
from pathlib import Path

HERE = Path(__file__).parent
VERSIONS = {"mlx": "0.32.4", "gguf": "0.19.0", "ml_dtypes": "0.6.0"}
SKIPPED = 77

try:
    found = {package: metadata.version(package) for package in VERSIONS}
except metadata.PackageNotFoundError as missing:
    print(f"{missing.name} is not installed")
    sys.exit(SKIPPED)
if found != VERSIONS:
    print(f"needs {VERSIONS}, found {found}")
    sys.exit(SKIPPED)

import ml_dtypes
import mlx.core as mx
import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, quants

K = 128
F32 = np.float32
FILES = {}
mx.set_default_device(mx.cpu)


def common_rows(rng, largest, smallest):
    """Cases for every format, from about `smallest` to `largest` in absolute value."""
    normal = lambda count: rng.standard_normal((count, K)).astype(F32)
    ramp = np.arange(K, dtype=F32) % 16
    ones = np.ones(K, dtype=F32)
    lone = np.zeros(K, dtype=F32)
    lone[[63, 64]] = [0.7, -0.7]
    outlier = normal(1)[0]
    outlier[[3, 100]] = [1000, -1000]
    return [
        *normal(2), *normal(1) * 0.02, *normal(1) + 3, *-np.abs(normal(1)), *np.abs(normal(1)),
        *[0 * ones, -0.0 * ones, -2.5 * ones, 0.1 * ones, 1e-7 * ones],
        *[ramp, -ramp, ramp - 8, ramp[::-1] / 16, ramp - 4.5, outlier, lone],
        *normal(1).clip(-4, 4) / 8 * largest, *normal(1) * smallest, *normal(1) * 1e-6,
    ]


def blocks_with_ends(rng, ends, size):
    """Rows of random blocks of `size`; a block lies within a pair of `ends` and has both."""
    low, high = np.asarray(ends, dtype=F32).T[:, :, None]
    blocks = rng.uniform(low + (high - low) * 0.01, high - (high - low) * 0.01, (len(low), size))
    places = np.array([rng.permutation(size)[:2] for _ in low])
    np.put_along_axis(blocks, places, np.hstack([low, high]), axis=1)
    return rows_of(blocks)


def blocks_with_maxima(rng, maxima, size=32):
    """Rows of random blocks of `size`; each block's largest element has one of the `maxima`."""
    maxima = np.asarray(maxima, dtype=F32)
    blocks = rng.uniform(-0.99, 0.99, (len(maxima), size)) * np.abs(maxima)[:, None]
    blocks[np.arange(len(maxima)), rng.integers(0, size, len(maxima))] = maxima
    return rows_of(blocks)


def rows_of(blocks):
    """Blocks, put side by side; the last row is filled with zeros."""
    values = np.asarray(blocks, dtype=F32).ravel()
    return list(np.pad(values, (0, -len(values) % K)).reshape(-1, K))


def around(values):
    """The f32 below each value, the values, the f32 above each."""
    values = np.asarray(values, dtype=F32)
    return np.concatenate([np.nextafter(values, F32(0)), values, np.nextafter(values, F32(np.inf))])


def weights(name, rows):
    """Stores weights, and returns them."""
    rows = np.array(rows, dtype=F32)
    assert np.isfinite(rows).all() and rows.shape[1] == K, name
    header = np.array(rows.shape, dtype="<u4").tobytes()
    FILES[f"weights-{name}.bin"] = header + rows.tobytes()
    return rows


def hashes(rows):
    """FNV-1a, 64 bits, of the bytes of each row."""
    rows = np.where(np.isnan(rows), np.uint32(0x7FC00000), rows.view(np.uint32))
    result = np.full(len(rows), 0xCBF29CE484222325, dtype=np.uint64)
    for column in np.ascontiguousarray(rows).view(np.uint8).T:
        result = (result ^ column) * np.uint64(0x100000001B3)
    return result


def write(name, names, parts, dequantized, g=0.0):
    """Stores one file; `parts` and `dequantized` are arrays with a row for each row."""
    dequantized = np.array(dequantized)
    assert dequantized.dtype == F32 and all(len(part) == len(dequantized) for part in parts)
    parts = [np.ascontiguousarray(part).tobytes() for part in parts]
    u32 = lambda *numbers: np.array(numbers, dtype="<u4").tobytes()
    text = " ".join(names).encode()
    header = [u32(*dequantized.shape, len(text)), text, np.array(g, dtype="<f4").tobytes()]
    header.append(u32(len(parts), *map(len, parts)))
    FILES[f"{name}.bin"] = b"".join([*header, *parts, hashes(dequantized).tobytes()])


def raw_codes(rng, bits, count, group):
    """`count` groups of codes, each with as many different ones as it holds; as bytes, packed."""
    codes = np.array([rng.permutation(np.arange(group) + group * i) for i in range(count)])
    fields = (codes % 2**bits)[:, :, None] >> np.arange(bits) & 1
    return np.packbits(fields.reshape(count, -1), axis=1, bitorder="little")


def all_codes(name, packed, bits):
    fields = np.unpackbits(np.ascontiguousarray(packed).view(np.uint8), bitorder="little")
    assert len(np.unique(fields.reshape(-1, bits) @ (1 << np.arange(bits)))) == 2**bits, name


def affine_weights(suffix, dtype, largest, smallest):
    rng = np.random.default_rng(64)
    rows = common_rows(rng, largest, smallest)
    for most in [3, 7, 15, 31, 63, 255]:  # a step of 1, and weights between two codes
        halves = rng.integers(0, 2 * most + 1, (K // 32, 32)) / 2
        halves[:, [5, 20]] = [0, most]
        rows.append(halves.ravel())
    rounded = mx.array(np.array(rows, dtype=F32)).astype(dtype)
    weights(f"affine-{suffix}", np.array(rounded.astype(mx.float32)))
    return rounded


def affine(bits, group, suffix, dtype, rounded):
    rng = np.random.default_rng(bits * group)
    planes = mx.quantize(rounded, group_size=group, bits=bits)
    # Rows more: scales and biases at the limits of their type and beyond, each with another one.
    info = mx.finfo(dtype)
    subnormal = {mx.float32: 2.0**-149, mx.float16: 2.0**-24, mx.bfloat16: 2.0**-133}[dtype]
    limits = [0.0, -0.0, info.max / 256, subnormal, -subnormal, -info.max / 256, 0.3, -0.7]
    limits += [np.inf, -np.inf, np.nan, info.max]
    rows = len(limits) * group // K
    codes = raw_codes(rng, bits, len(limits), group).reshape(rows, -1).view(np.uint32)
    scales = mx.array(limits).astype(dtype).reshape(rows, -1)
    biases = mx.array(limits[3:] + limits[:3]).astype(dtype).reshape(rows, -1)
    raw = [mx.array(codes), scales, biases]
    codes, *pair = [mx.concatenate([ours, theirs]) for ours, theirs in zip(planes, raw)]
    wide = [part.astype(mx.float32) for part in pair]
    dequantized = mx.dequantize(codes, *wide, group_size=group, bits=bits)
    stored = [part if dtype == mx.float32 else part.view(mx.uint16) for part in pair]
    name = f"affine-{bits}bit-g{group}-{suffix}"
    all_codes(name, codes, bits)
    parts = [np.array(part) for part in [codes, *stored]]
    write(name, [f"affine-{suffix}"], parts, dequantized)


def mxfp4_rows(rng):
    """The largest elements around 6 * 2^n, where the scale changes, and elements around ties."""
    maxima = around(6 * 2.0 ** np.array([-127, -126, -100, -1, 0, 1, 100, 124]))
    maxima = [*maxima, 6.01 * 2.0**-128, 5.1 * 2.0**-127, -4.5 * 2.0**-127, 2.9e38]
    ties = around([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5])
    block = np.array([*ties, 6, 4, 3, 2, 1.5, 1, 0.5, 0.1, -0.1, 0.0, -0.0])
    blocks = [2.0**n * sign * block for n in [0, -100, 124, -127] for sign in [1, -1]]
    underflow = 2.0**-149 * rng.integers(-3, 4, K)  # largest / 6 rounds to zero
    return [*blocks_with_maxima(rng, maxima), *rows_of(blocks), underflow]


def e4m3():
    """The values from 0 to 448 that a code of e4m3 has."""
    return np.array(mx.from_fp8(mx.arange(127).astype(mx.uint8), mx.float32))


def mxfp8_rows(rng):
    """The largest elements around 448 * 2^n, where the scale changes; elements around all ties."""
    maxima = around(448 * 2.0 ** np.array([-127, -126, -100, -1, 0, 1, 100, 119]))
    values = e4m3()
    ties = around((values[1:] + values[:-1]) / 2)
    ties *= np.resize([1, -1], len(ties))
    blocks = [[448, *ties[i : i + 31]] for i in range(0, len(ties), 31)]
    blocks = np.array([np.pad(block, (0, 32 - len(block))) for block in blocks], dtype=F32)
    low, high = blocks[:2] * F32(2.0**-127), -blocks[-2:] * F32(2.0**119)
    underflow = 2.0**-149 * rng.integers(-200, 201, K)  # largest / 448 rounds to zero
    rows = [*blocks_with_maxima(rng, maxima), *rows_of(blocks), *rows_of([*low, *high])]
    return [*rows, underflow]


def nvfp4_rows(rng):
    """Scales around ties of e4m3 and at its ends; elements around ties."""
    values = e4m3()
    middles = (values[1:] + values[:-1]) / 2
    maxima = 6 * around(middles[[*range(10), 15, 16, 60, 61, 117, 125]])
    maxima = [*maxima * np.resize([1, -1], len(maxima)), 2688, 2879, 1e-30, 2.0**-149]
    ties = np.split(around([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5]), 3)
    scales = np.repeat(values[[1, 7, 8, 56, 57, 63, 126]], 3)
    blocks = [[6, *tie, *-tie, -0.0] for tie in ties] * 7 * scales[:, None].astype(F32)
    return [*blocks_with_maxima(rng, maxima, 16), *rows_of(blocks)]


def factor_rows(g):
    """Numbers for which the order of products and quotients by g matters: scales, then elements."""
    inverse, steps = F32(2688) / F32(g), np.arange(-4, 5, dtype=np.int32)
    beside = lambda values: (values.astype(F32).view(np.int32)[:, None] + steps).ravel().view(F32)
    values = e4m3()
    maxima = beside((values[1:] + values[:-1]) / 2 * 6 / inverse)
    e4m3_code = lambda wanted: np.array(mx.to_fp8(mx.array(wanted)))
    differ = e4m3_code(maxima / 6 * inverse) != e4m3_code(maxima * inverse / 6)
    blocks = [[most, *[0] * 15] for most in maxima[differ][::4]]
    ties = np.array([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5])
    for scale in values[[57, 60, 83, 101]]:
        own = beside(ties * scale / inverse)
        x = own / scale * inverse
        orders = [own * inverse / scale, own * (inverse / scale), own / (scale / inverse)]
        tie = np.repeat(ties, len(steps))
        differ = np.any([(other > tie) != (x > tie) for other in orders], axis=0)
        # The first weight gives the scale.
        blocks += [[6 * scale / inverse, *np.resize(own[differ], 15)]]
    return rows_of(blocks)


def microscaling(name, mode, names, rows, g=0.0):
    group, bits = (16 if mode == "nvfp4" else 32), (8 if mode == "mxfp8" else 4)
    options = {"mode": mode} | ({"global_scale": mx.array(g)} if g else {})
    planes = mx.quantize(mx.array(np.concatenate(rows)), **options)
    # Every scale, those of infinities and NaN too.
    rng = np.random.default_rng(bits)
    codes = raw_codes(rng, bits, 256, group).reshape(-1, K * bits // 8).view(np.uint32)
    scales = rng.permutation(256).astype(np.uint8).reshape(-1, K // group)
    raw = map(mx.array, [codes, scales])
    planes = [mx.concatenate([ours, theirs]) for ours, theirs in zip(planes, raw)]
    dequantized = mx.dequantize(*planes, dtype=mx.float32, **options)
    all_codes(name, planes[0], bits)
    write(name, names, list(map(np.array, planes)), dequantized, g)


# Scales of f16: subnormal ones, ties, the largest.
HALVES = np.array(
    [*np.array([3, 2.5, 2, 1.5, 1, 0.75, 0.5, 0.25]) * 2.0**-24, 65504, 65519, 2.0**-14]
    + [1 + 2.0**-11, 1 + 3 * 2.0**-11, 1 + 2.0**-11 + 2.0**-20, 1 + 2.0**-11 - 2.0**-20]
    + [2.0**-14 * (1 - 2.0**-11)]
)


def symmetric_rows(rng, levels):
    """Scales d = largest / levels around f16 ties and limits; elements halfway between codes."""
    d = HALVES * levels
    halves = (np.arange(K) % 32 - 16) / 2.0  # -8 to 7.5
    far = np.arange(K) - 63.5
    far[::32] = levels
    same = np.tile([1.0, -1.0, 0.5, -0.5], 32)  # of two largest, the first gives the sign
    rows = blocks_with_maxima(rng, np.concatenate([d, -d]))
    return rows + [halves, -halves, halves * 1.3, far, far * 1.3, same, -same]


def ranged_rows(rng, levels):
    """Scales d = (largest - least) / levels and least elements at limits; elements halfway."""
    least = np.concatenate([HALVES[:8], -HALVES[::-1][:8]])
    ends = [[low, low + d * levels] for low, d in zip(least, np.append(HALVES[:8], HALVES[8:]))]
    ends += [[-65519, 0], [-65504, 65504], [65504, 65519], [1, 1 + levels]]
    halves = np.arange(K) % 32 * (levels / 31) - 7.5
    halves[1::2] = np.floor(halves[1::2]) + 0.0
    return [*blocks_with_ends(rng, ends, 32), halves, -halves, halves * 1.3]


def gguf_mxfp4_rows(rng):
    """The largest elements at 2^n, where the scale changes, and elements around ties."""
    powers = 2.0 ** np.array([-125, -124, -123, -1, 0, 1, 100, 127])
    # Not the numbers just below a power of two, for which numpy's log2 may give the next integer.
    maxima = [*powers, *np.nextafter(powers.astype(F32), F32(3.4e38)), *-powers * 1.9375]
    ties = around([0.5, 1.5, 2.5, 3.5, 5, 7, 10])
    block = np.array([*ties, 15.5, 12, 8, 6, 4, 3, 2, 1, -0.3, 0.0, -0.0])
    blocks = [2.0**n * sign * block for n in [0, -100, 123, -128] for sign in [1, -1]]
    return [*blocks_with_maxima(rng, maxima), *rows_of(blocks)]


# Offsets of the numbers in f16 in a block.
HALVES_AT = {
    "q4_0": [0], "q4_1": [0, 2], "q5_0": [0], "q5_1": [0, 2], "q8_0": [0], "iq4_nl": [0],
    "gguf-mxfp4": [], "q2_k": [80, 82], "q3_k": [108], "q4_k": [0, 2], "q5_k": [0, 2],
    "q6_k": [208], "iq4_xs": [0],
}  # fmt: skip

# How blocks are filled so that their elements tell all codes, sub-scales or minima apart: d, dmin
# or least element, other bytes, and how many numbers there are.
APART = {
    "q4_0": [(1, 0, {}, 16)], "q4_1": [(1, 0, {}, 16)], "iq4_nl": [(1, 0, {}, 16)],
    "q5_0": [(1, 0, {}, 32)], "q5_1": [(1, 0, {}, 32)], "q8_0": [(1, 0, {}, 256)],
    "gguf-mxfp4": [(1, 0, {(0, 1): 127}, 15)],  # of 16 codes, two are zeros
    "q2_k": [(1, 0, {(0, 16): 1}, 4), (1, 0, {(16, 80): 0x55}, 16), (0, 1, {}, 16)],
    "q3_k": [(1, 0, {(96, 104): 0x11, (104, 108): 0xAA}, 8), (1, 0, {(0, 96): 0}, 64)],
    "q4_k": [
        (1, 0, {(4, 8): 1, (8, 12): 0, (12, 16): 1}, 16),
        (1, 0, {(16, 144): 0x11}, 64), (0, 1, {}, 64),
    ],
    "q5_k": [
        (1, 0, {(4, 8): 1, (8, 12): 0, (12, 16): 1}, 32),
        (1, 0, {(16, 48): 0, (48, 176): 0x11}, 64), (0, 1, {}, 64),
    ],
    "q6_k": [(1, 0, {(192, 208): 1}, 64), (1, 0, {(0, 192): 0}, 256)],
    "iq4_xs": [(1, 0, {(2, 4): 0xAA, (4, 8): 0x11}, 16), (1, 0, {(8, 136): 0x88}, 64)],
}  # fmt: skip


def set_halves(blocks, at, halves):
    blocks[:, at : at + 2] = np.asarray(halves, dtype=np.float16).reshape(-1, 1).view(np.uint8)


def has_all_numbers(name, blocks, kind):
    """Whether every code, sub-scale and minimum occurs, as gguf reads them."""
    for *halves, fills, count in APART[name]:
        filled = blocks.copy()
        for at, half in zip(HALVES_AT[name], halves):
            set_halves(filled, at, half)
        for (start, end), byte in fills.items():
            filled[:, start:end] = byte
        if len(np.unique(quants.dequantize(filled, kind))) != count:
            return False
    return True


def random_blocks(name, kind):
    """Random bytes with all numbers of the format; scales of usual size, and a few at the
    limits."""
    rng = np.random.default_rng(int(kind))
    size, bytes_per_block = GGML_QUANT_SIZES[kind]
    blocks = np.zeros((64 if size == 32 else 32, bytes_per_block), dtype=np.uint8)
    while not has_all_numbers(name, blocks, kind):
        blocks = rng.integers(0, 256, blocks.shape, dtype=np.uint8)
        if name == "q6_k":  # too many for chance
            blocks[:, 192:208] = rng.permutation(512).reshape(-1, 16) % 256
    limits = [0, -0.0, 1, -1, 65504, -65504, 2.0**-24, -(2.0**-14), 1023 * 2.0**-24]
    limits += [np.inf, -np.inf, np.nan]
    for i, at in enumerate(HALVES_AT[name]):
        d = (rng.standard_normal(len(blocks)) * 0.05).astype(np.float16)
        d[i : i + len(limits)] = limits
        set_halves(blocks, at, d)
    if name == "gguf-mxfp4":
        all_codes(name, blocks[:, 1:], 4)
        blocks[:, 0] = [*range(32), *range(224, 256)]
    return blocks


def gguf(name, names=(), rows=()):
    kind = GGMLQuantizationType[name.removeprefix("gguf-").upper()]
    size, bytes_per_block = GGML_QUANT_SIZES[kind]
    blocks = random_blocks(name, kind).reshape(-1, max(size, K) // size * bytes_per_block)
    if names:
        blocks = np.concatenate([quants.quantize(np.concatenate(rows), kind), blocks])
    write(name, names, [blocks], quants.dequantize(blocks, kind))


# What codes stand for. nf4 and fp4 are the tables of `get_4bit_type` in bitsandbytes 0.50.2; on a
# CPU its `dequantize_4bit` gives the bits of code[i] * absmax.
NF4 = """
    -1.0 -0.6961928009986877 -0.5250730514526367 -0.39491748809814453 -0.28444138169288635
    -0.18477343022823334 -0.09105003625154495 0.0 0.07958029955625534 0.16093020141124725
    0.24611230194568634 0.33791524171829224 0.44070982933044434 0.5626170039176941
    0.7229568362236023 1.0
"""
FP4 = "0 0.0625 8 12 4 6 2 3 0 -0.0625 -8 -12 -4 -6 -2 -3"
BYTES = np.arange(256, dtype=np.uint8)
NUMBERS = {
    "int8": BYTES.view(np.int8).astype(F32),
    "fp8-e4m3": BYTES.view(ml_dtypes.float8_e4m3fn).astype(F32),
    "fp8-e5m2": BYTES.view(ml_dtypes.float8_e5m2).astype(F32),
    "nf4": np.array(NF4.split(), dtype=F32),
    "fp4": np.array(FP4.split(), dtype=F32) / F32(12),
}


def scaled(name, group):
    """Every code under scales of usual size, and under scales at the limits."""
    numbers = NUMBERS[name]
    bits = len(numbers).bit_length() - 1
    rng = np.random.default_rng(bits * group)
    limits = [0, -0.0, 1, -1, 2.0**-149, -(2.0**-149), 2.0**-126, 3.4e38, -3.4e38]
    limits += [np.inf, -np.inf, np.nan]
    scales = np.concatenate([rng.standard_normal(256 // group * 4 + 20), limits]).astype(F32)
    packed = raw_codes(rng, bits, len(scales), group)
    fields = np.unpackbits(packed, axis=1, bitorder="little").reshape(-1, group, bits)
    values = numbers[fields @ (1 << np.arange(bits))] * scales[:, None]
    name = f"{name}-g{group}"
    all_codes(name, packed, bits)
    k = max(group, K)
    rows = [part.reshape(-1, k // group * part.shape[1]) for part in [packed, scales[:, None]]]
    write(name, [], rows, values.reshape(-1, k))


def make():
    types = [
        ("f32", mx.float32, 3e38, 1e-41),
        ("f16", mx.float16, 65504.0, 1e-7),
        ("bf16", mx.bfloat16, 3e38, 1e-41),
    ]
    for suffix, dtype, largest, smallest in types:
        rounded = affine_weights(suffix, dtype, largest, smallest)
        for bits in [2, 3, 4, 5, 6, 8]:
            for group in [32, 64, 128]:
                affine(bits, group, suffix, dtype, rounded)

    rng = np.random.default_rng(4)
    mx_common = weights("mx", common_rows(rng, 2000, 1e-3))
    for name, rows in [("mxfp4", mxfp4_rows), ("mxfp8", mxfp8_rows), ("nvfp4", nvfp4_rows)]:
        own = weights(name, rows(rng))
        microscaling(name, name, ["mx", name], [mx_common, own])
    own = [own, weights("nvfp4-factor", factor_rows(2700.3))]
    names = ["mx", "nvfp4", "nvfp4-factor"]
    microscaling("nvfp4-factor", "nvfp4", names, [mx_common, *own], g=2700.3)

    rng = np.random.default_rng(8)
    common = weights("gguf", common_rows(rng, 65504, 1e-36))
    for name, make_rows, levels in [
        *[("q4_0", symmetric_rows, 8), ("q5_0", symmetric_rows, 16), ("q8_0", symmetric_rows, 127)],
        *[("q4_1", ranged_rows, 15), ("q5_1", ranged_rows, 31)],
    ]:
        own = weights(name, make_rows(rng, levels))
        gguf(name, ["gguf", name], [common, own])
    own = weights("gguf-mxfp4", gguf_mxfp4_rows(rng))
    gguf("gguf-mxfp4", ["gguf-mxfp4"], [own])
    for name in ["iq4_nl", "q2_k", "q3_k", "q4_k", "q5_k", "q6_k", "iq4_xs"]:
        gguf(name)

    for name, groups in [("int8", [16, 32, 128]), ("nf4", [64]), ("fp4", [64])]:
        for group in groups:
            scaled(name, group)
    for name in ["fp8-e4m3", "fp8-e5m2"]:
        for group in [32, 128]:
            scaled(name, group)


def check():
    """Says which files differ from what the packages make."""
    held = {path.name: path.read_bytes() for path in HERE.glob("*.bin")}
    names = sorted(held.keys() | FILES.keys())
    wrong = [name for name in names if held.get(name) != FILES.get(name)]
    if wrong:
        sys.exit(f"these files are not what {VERSIONS} make: {' '.join(wrong)}")


if __name__ == "__main__":
    with np.errstate(over="ignore", invalid="ignore"):  # of infinite and the largest scales
        make()
    if sys.argv[1:] == ["--check"]:
        check()
    else:
        for name, contents in FILES.items():
            (HERE / name).write_bytes(contents)
