"""Times products of ggml's Vulkan backend and writes the same JSON as `cargo xtask bench`.

    python3 ggml_bench.py FOLDER --shapes 14336x4096 --formats q4_0,q4_k,f16 --rows 1,2,4,8 \\
        --json ggml.json
    python3 ggml_bench.py FOLDER --shapes 1408x2048 --experts 64 --rows 1,4,32,128

FOLDER holds ggml's shared libraries (ggml-base and ggml-vulkan). Shapes are those of the weights,
N×K, and each is measured in each format with each number of rows. With --experts they are the
shapes of one expert, and the rows those of each.

Activations and results are f32, as ggml wants them. A row is named f16 all the same if its weights
are f16 or quantized, so that it stands beside this library's.

A sample is the time of one graph of up to 200 products, from the call until the device has
finished. Weights and activations are random and rotate among sets that together exceed the caches.
All products write one result, so that each begins when the one before has ended, as in this
library's bench; with --independent, neighbours write results of their own, and the device may run
them at once. Results of the last product are checked.
"""

import argparse
import array
import contextlib
import ctypes
import datetime
import itertools
import json
import pathlib
import random
import re
import statistics
import sys
import time
import types

# By our names: ggml's number of the type, and its function that decodes a row.
FORMATS = {
    "q4_0": (2, "dequantize_row_q4_0"), "q4_1": (3, "dequantize_row_q4_1"),
    "q5_0": (6, "dequantize_row_q5_0"), "q5_1": (7, "dequantize_row_q5_1"),
    "q8_0": (8, "dequantize_row_q8_0"), "q2_k": (10, "dequantize_row_q2_K"),
    "q3_k": (11, "dequantize_row_q3_K"), "q4_k": (12, "dequantize_row_q4_K"),
    "q5_k": (13, "dequantize_row_q5_K"), "q6_k": (14, "dequantize_row_q6_K"),
    "iq4_nl": (20, "dequantize_row_iq4_nl"), "iq4_xs": (23, "dequantize_row_iq4_xs"),
    "mxfp4": (39, "dequantize_row_mxfp4"), "nvfp4": (40, "dequantize_row_nvfp4"),
    "f16": (1, "ggml_fp16_to_fp32_row"), "bf16": (30, "ggml_bf16_to_fp32_row"), "f32": (0, ""),
}
DENSE = ("f16", "bf16", "f32")
F32, I32 = 0, 26
SHAPES = "4096x4096,14336x4096,4096x14336,2048x1408,128256x4096,640x2048"
ROTATED_BYTES = 256e6
# Products of a graph at most, and so sets of weights.
MOST = 200
# Seconds: of one sample; of work before the first, after a pause and without one.
SAMPLE = 0.02
WARM_UP = 0.5
SETTLING = 0.15
# Random numbers that weights and activations repeat. The first is a prime number of the largest
# blocks, so rows come again only after thousands.
WEIGHTS, ACTIVATIONS = 8191 * 256, 2_000_003
# Results to check, and how far they may be off: the limit of ggml's own tests, the sum of squared
# errors divided by that of squares.
CHECKED, MOST_ERROR = 48, 5e-4
WRONG = "wrong results"

POINTER, SIZE, INT, TEXT = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_char_p
LOG = ctypes.CFUNCTYPE(None, INT, TEXT, POINTER)


class InitParams(ctypes.Structure):
    _fields_ = [("mem_size", SIZE), ("mem_buffer", POINTER), ("no_alloc", ctypes.c_bool)]


# What is called: the result, then the arguments. No field of a structure is read, because fields
# move from version to version.
FUNCTIONS = {
    "ggml_version": (TEXT,),
    "ggml_commit": (TEXT,),
    "ggml_log_set": (None, LOG, POINTER),
    "ggml_type_name": (TEXT, INT),
    "ggml_blck_size": (ctypes.c_int64, INT),
    "ggml_row_size": (SIZE, INT, ctypes.c_int64),
    "ggml_nbytes": (SIZE, POINTER),
    "ggml_quantize_chunk": (SIZE, INT, POINTER, POINTER, *[ctypes.c_int64] * 3, POINTER),
    "ggml_tensor_overhead": (SIZE,),
    "ggml_graph_overhead_custom": (SIZE, SIZE, ctypes.c_bool),
    "ggml_init": (POINTER, InitParams),
    "ggml_free": (None, POINTER),
    "ggml_new_tensor_3d": (POINTER, POINTER, INT, *[ctypes.c_int64] * 3),
    "ggml_mul_mat": (POINTER, POINTER, POINTER, POINTER),
    "ggml_mul_mat_id": (POINTER, POINTER, POINTER, POINTER, POINTER),
    "ggml_new_graph_custom": (POINTER, POINTER, SIZE, ctypes.c_bool),
    "ggml_build_forward_expand": (None, POINTER, POINTER),
    "ggml_backend_alloc_ctx_tensors": (POINTER, POINTER, POINTER),
    "ggml_backend_alloc_buffer": (POINTER, POINTER, SIZE),
    "ggml_backend_buffer_get_base": (POINTER, POINTER),
    "ggml_backend_buffer_free": (None, POINTER),
    "ggml_backend_get_alignment": (SIZE, POINTER),
    "ggml_backend_tensor_alloc": (INT, POINTER, POINTER, POINTER),
    "ggml_backend_tensor_set": (None, POINTER, POINTER, SIZE, SIZE),
    "ggml_backend_tensor_get": (None, POINTER, POINTER, SIZE, SIZE),
    "ggml_backend_supports_op": (ctypes.c_bool, POINTER, POINTER),
    "ggml_backend_graph_compute": (INT, POINTER, POINTER),
    "ggml_backend_vk_init": (POINTER, SIZE),
    "ggml_backend_vk_get_device_count": (INT,),
    "ggml_backend_vk_get_device_description": (None, INT, TEXT, SIZE),
}


class Skip(Exception):
    """Why a shape has no time."""


def functions(folder):
    """ggml's functions, from the libraries in that folder."""
    def library(name):
        found = sorted(path for path in pathlib.Path(folder).glob(f"*{name}*")
                       if re.search(r"\.(so|dll|dylib)\b", path.name))
        if not found:
            raise SystemExit(f"{folder}: no library whose name has {name!r} in it")
        try:
            return ctypes.CDLL(str(found[0].resolve()), ctypes.RTLD_GLOBAL)
        except OSError as error:
            raise SystemExit(f"{found[0]}: {error}")

    base, vulkan = library("ggml-base"), library("ggml-vulkan")
    decoders = {name: (None, POINTER, POINTER, ctypes.c_int64)
                for _, name in FORMATS.values() if name and hasattr(base, name)}
    ggml = types.SimpleNamespace()
    for name, (result, *arguments) in {**FUNCTIONS, **decoders}.items():
        try:
            function = getattr(vulkan if "_vk_" in name else base, name)
        except AttributeError:
            raise SystemExit(f"{folder}: this version of ggml has no {name}")
        function.restype, function.argtypes = result, arguments
        setattr(ggml, name.removeprefix("ggml_"), function)
    return ggml


def address(numbers):
    """Where the numbers of an array lie."""
    return numbers.buffer_info()[0]


def uniform(count, seed):
    """An array of random f32 in [-1, 1)."""
    source = random.Random(seed)
    return array.array("f", (2 * source.random() - 1 for _ in range(count)))


def pieces(ring, start, size):
    """Cuts `size` bytes of a ring, from `start` on, where the ring begins anew."""
    at = 0
    while at < size:
        begin = (start + at) % len(ring)
        piece = min(len(ring) - begin, size - at)
        yield at, begin, piece
        at += piece


def part(ring, start, size):
    """`size` bytes of a ring, from `start` on."""
    return b"".join(ring[begin:begin + piece] for _, begin, piece in pieces(ring, start, size))


class Device:
    """A backend, and what all shapes share."""

    def __init__(self, folder, number):
        self.ggml, self.log = functions(folder), []
        # ggml keeps the function, so it must live as long as the backend.
        self.listener = LOG(self.hear)
        self.ggml.log_set(self.listener, None)
        if number >= self.ggml.backend_vk_get_device_count():
            raise SystemExit(f"--device {number}: ggml's Vulkan backend sees no such device")
        description = ctypes.create_string_buffer(256)
        self.ggml.backend_vk_get_device_description(number, description, len(description))
        self.name = description.value.decode()
        self.backend = self.ggml.backend_vk_init(number)
        if not self.backend:
            raise SystemExit(f"--device {number}: no backend; {''.join(self.log).strip()}")
        said = re.search(rf"ggml_vulkan: {number} = .*", "".join(self.log))
        self.features = said[0].split(" | ", 1)[-1] if said else ""
        self.values, self.rings = uniform(WEIGHTS, 1), {}
        self.activations = uniform(ACTIVATIONS, 2).tobytes()

    def hear(self, level, text, _):
        """Keeps what ggml says, and passes errors on."""
        self.log.append(text.decode(errors="replace"))
        if level == 4:
            sys.stderr.write(self.log[-1])

    def ring(self, format):
        """The random weights in that format."""
        if format not in self.rings:
            number, _ = FORMATS[format]
            ring = ctypes.create_string_buffer(self.ggml.row_size(number, WEIGHTS))
            source = address(self.values)
            self.ggml.quantize_chunk(number, source, ring, 0, WEIGHTS // 256, 256, None)
            self.rings[format] = ring.raw
        return self.rings[format]

    def decoded(self, format, blocks, count):
        """`count` numbers of that format."""
        numbers, (_, decode) = array.array("f", bytes(4 * count)), FORMATS[format]
        if not decode:
            return array.array("f", blocks)
        getattr(self.ggml, decode.removeprefix("ggml_"))(blocks, address(numbers), count)
        return numbers

    def upload(self, tensor, ring, start):
        """Fills a tensor with the numbers of a ring from byte `start` on."""
        for at, begin, piece in pieces(ring, start, self.ggml.nbytes(tensor)):
            source = ctypes.cast(ring, POINTER).value + begin
            self.ggml.backend_tensor_set(tensor, source, at, piece)

    def context(self, stack, tensors, graph=0):
        """A place for the descriptions of tensors, and for a graph of so many."""
        size = tensors * self.ggml.tensor_overhead()
        size += self.ggml.graph_overhead_custom(graph, False) if graph else 0
        context = self.ggml.init(InitParams(size, None, True))
        stack.callback(self.ggml.free, context)
        return context

    def kept(self, stack, buffer):
        """A buffer that was asked for; it lives as long as the stack."""
        if not buffer:
            raise Skip("the device has no memory for it")
        stack.callback(self.ggml.backend_buffer_free, buffer)
        return buffer

    def tensors(self, stack, count, number, sizes):
        """Tensors on the device, with nothing in them."""
        context = self.context(stack, count)
        made = [self.ggml.new_tensor_3d(context, number, *sizes) for _ in range(count)]
        self.kept(stack, self.ggml.backend_alloc_ctx_tensors(context, self.backend))
        return made


class Weights:
    """Sets of weights on the device, a matrix or a stack for experts."""

    def __init__(self, device, stack, format, n, k, experts):
        self.device, self.format, self.n, self.k, self.experts = device, format, n, k, experts
        ggml, (self.number, decode) = device.ggml, FORMATS[format]
        has = not decode or hasattr(ggml, decode.removeprefix("ggml_"))
        if not has or ggml.type_name(self.number).decode().lower() != format:
            raise Skip("this version of ggml has no such type")
        self.block = ggml.blck_size(self.number)
        if k % self.block:
            raise Skip(f"K is not a multiple of {self.block}, the elements of a block")
        self.row_bytes = ggml.row_size(self.number, k)
        self.bytes = self.row_bytes * n * max(1, experts)
        self.ring = device.ring(format)
        count = min(MOST, max(2, -int(-ROTATED_BYTES // self.bytes)))
        self.sets = device.tensors(stack, count, self.number, (k, n, max(1, experts)))
        for at, tensor in enumerate(self.sets):
            device.upload(tensor, self.ring, self.start(at))

    def start(self, at):
        """The byte of the ring at which a set begins."""
        return 1009 * at * self.device.ggml.row_size(self.number, self.block)

    def row(self, at, expert, n):
        """A row of a set, decoded."""
        start = self.start(at) + (expert * self.n + n) * self.row_bytes
        return self.device.decoded(self.format, part(self.ring, start, self.row_bytes), self.k)


class Products:
    """Products of some rows with the sets of weights by turns. If there are experts, each token
    has rows for `used` of them."""

    def __init__(self, stack, weights, rows, used, independent):
        device = weights.device
        self.device, self.weights = device, weights
        ggml, k, experts = device.ggml, weights.k, max(1, weights.experts)
        self.m = rows * experts
        tokens = self.m // used
        sizes = (k, used, tokens) if weights.experts else (k, self.m, 1)
        self.sets = device.tensors(stack, len(weights.sets), F32, sizes)
        for at, tensor in enumerate(self.sets):
            device.upload(tensor, device.activations, self.start(at))
        if weights.experts:
            [self.chosen] = device.tensors(stack, 1, I32, (used, tokens, 1))
            chosen = array.array("i", (row % experts for row in range(self.m)))
            ggml.backend_tensor_set(self.chosen, address(chosen), 0, 4 * self.m)
        self.places = len(self.sets) if independent else 1
        alignment = ggml.backend_get_alignment(device.backend)
        self.stride = -(-4 * self.m * weights.n // alignment) * alignment
        buffer = ggml.backend_alloc_buffer(device.backend, self.places * self.stride)
        self.results = device.kept(stack, buffer)

    def start(self, at):
        """The byte of the ring at which a set of activations begins."""
        return 4 * 1009 * at

    def product(self, context, at):
        """A product of the sets whose turn it is."""
        ggml, turn = self.device.ggml, at % len(self.sets)
        operands = self.weights.sets[turn], self.sets[turn]
        if self.weights.experts:
            made = ggml.mul_mat_id(context, *operands, self.chosen)
        else:
            made = ggml.mul_mat(context, *operands)
        if not ggml.backend_supports_op(self.device.backend, made):
            raise Skip("the backend does not support it")
        place = ggml.backend_buffer_get_base(self.results) + at % self.places * self.stride
        ggml.backend_tensor_alloc(self.results, made, place)
        return made

    def graph(self, stack, count):
        """A graph of so many products, and the last of them."""
        ggml = self.device.ggml
        # A graph has a place for each product and for each tensor that one reads.
        places = count + 2 * len(self.sets) + 1
        context = self.device.context(stack, count, places)
        graph = ggml.new_graph_custom(context, places, False)
        for at in range(count):
            last = self.product(context, at)
            ggml.build_forward_expand(graph, last)
        return graph, last

    def seconds(self, graph):
        """Seconds from the call to the end of the last product."""
        begin = time.perf_counter()
        status = self.device.ggml.backend_graph_compute(self.device.backend, graph)
        if status:
            raise SystemExit(f"the graph failed with status {status}")
        return time.perf_counter() - begin

    def samples(self, count, warm_up):
        """Sorted times of one product, after a check."""
        repetitions = 1
        while True:
            with contextlib.ExitStack() as stack:
                graph, last = self.graph(stack, repetitions)
                once = min(self.seconds(graph) for _ in range(3)) / repetitions
                wanted = max(1, min(MOST, int(SAMPLE / once)))
                if wanted > 1.2 * repetitions:
                    repetitions = wanted
                    continue
                end = time.perf_counter() + warm_up
                while time.perf_counter() < end:
                    self.seconds(graph)
                times = sorted(self.seconds(graph) / repetitions for _ in range(count))
                self.check(last, (repetitions - 1) % len(self.sets))
                return times

    def check(self, product, turn):
        """Compares some results with sums in f64 of the decoded weights."""
        ggml, weights, source = self.device.ggml, self.weights, random.Random(3)
        got, squares, errors = ctypes.c_float(), 0.0, 0.0
        for at in range(CHECKED):
            # The first, the last, and some between.
            m, n = (0, 0) if at == 0 else (self.m - 1, weights.n - 1) if at == 1 else (
                source.randrange(self.m), source.randrange(weights.n))
            size = 4 * weights.k
            begin = self.start(turn) + m * size
            row = array.array("f", part(self.device.activations, begin, size))
            expert = m % max(1, weights.experts)
            wanted = sum(x * w for x, w in zip(row, weights.row(turn, expert, n)))
            ggml.backend_tensor_get(product, ctypes.byref(got), 4 * (m * weights.n + n), 4)
            squares += wanted * wanted
            errors += (got.value - wanted) ** 2
        if not errors <= MOST_ERROR * squares:
            raise Skip(f"{WRONG}, by {errors / squares:.2g} of their squares")


def shape_name(rows, n, k, format, experts):
    """The name of a product with that many rows to each matrix."""
    types = [] if format == "f32" else [format] if format in DENSE else ["f16", format]
    fields = [f"{rows * max(1, experts)}x{n}x{k}", "NT", *types]
    return ":".join(fields + [f"e{experts}"] * bool(experts))


def measure(weights, rows, warm_up, args):
    """The row of one product: the faster of the ways in which ggml takes experts."""
    timed = {}
    for used in (1, 8) if weights.experts and weights.experts % 8 == 0 else (1,):
        with contextlib.ExitStack() as stack:
            way = "mul_mat" if not weights.experts else f"mul_mat_id, {used} to a token"
            products = Products(stack, weights, rows, used, args.independent)
            timed[way] = products.samples(args.samples, warm_up)
    way, times = min(timed.items(), key=lambda item: statistics.median(item[1]))
    middle, m, n, k = statistics.median(times), products.m, weights.n, weights.k
    dtype, quantized = weights.format, ""
    if dtype not in DENSE:
        dtype, quantized = "f16", dtype
    return {
        "m": m, "n": n, "k": k, "layout": "NT", "dtype": dtype, "batch": 1, "weights": quantized,
        "experts": f"e{weights.experts}" if weights.experts else "", "kernel": f"ggml.{way}",
        "ms": middle * 1e3, "spread": (times[-1] - times[0]) / middle,
        "tflops": 2 * m * n * k / middle * 1e-12,
        "gbs": (weights.bytes + 4 * m * (n + k)) / middle * 1e-9,
        "roofline": 0.0, "method": "wall clock of a graph",
    }


def positive(text):
    """A count from 1 up."""
    if not re.fullmatch(r"[1-9]\d*", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 up")
    return int(text)


def numbers(text):
    """Numbers from 1 up, separated by commas."""
    return [positive(number) for number in text.split(",")]


def matrices(text):
    """Shapes N×K, separated by commas."""
    if not re.fullmatch(r"[1-9]\d*x[1-9]\d*(,[1-9]\d*x[1-9]\d*)*", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no list of shapes NxK, as 14336x4096")
    return [tuple(map(int, shape.split("x"))) for shape in text.split(",")]


def formats(text):
    """Formats of weights, separated by commas."""
    for format in text.split(","):
        if format not in FORMATS:
            raise argparse.ArgumentTypeError(f"{format!r} is none of {', '.join(FORMATS)}")
    return text.split(",")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", help="where ggml's shared libraries are")
    parser.add_argument("--shapes", type=matrices, default=SHAPES, help="of weights, N×K")
    parser.add_argument("--formats", type=formats, default=",".join(FORMATS))
    parser.add_argument("--rows", type=numbers, default="1,2,4,8,16,512,4096")
    parser.add_argument("--experts", type=positive, default=0, help="matrices of a shape")
    parser.add_argument(
        "--independent", action="store_true", help="products need not wait for each other"
    )
    parser.add_argument("--samples", type=positive, default=9)
    parser.add_argument("--device", type=int, default=0, help="by ggml's number")
    parser.add_argument("--json", help="file to write")
    args = parser.parse_args()

    device = Device(args.folder, args.device)
    version, commit = (text().decode() for text in (device.ggml.version, device.ggml.commit))
    report = {
        "library": f"ggml {version}", "adapter": device.name, "backend": "vulkan",
        "driver": device.features, "commit": commit,
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "peak_tflops": 0.0, "peak_gbs": 0.0, "rows": [], "skipped": [],
    }
    print(f"ggml {version} {commit} on {device.name}: {device.features}", flush=True)
    for (n, k), format in itertools.product(args.shapes, args.formats):
        with contextlib.ExitStack() as stack:
            weights = None
            for rows in args.rows:
                name = shape_name(rows, n, k, format, args.experts)
                try:
                    warm_up = SETTLING if weights else WARM_UP
                    weights = weights or Weights(device, stack, format, n, k, args.experts)
                    row = {"shape": name, **measure(weights, rows, warm_up, args)}
                except Skip as why:
                    report["skipped"].append({"shape": name, "reason": str(why)})
                    print(f"{name:44} {why}", flush=True)
                    continue
                report["rows"].append(row)
                print(f"{name:44} {row['kernel']:26} {row['ms']:9.4f} ms "
                      f"{row['tflops']:8.2f} TFLOP/s {row['gbs']:7.0f} GB/s "
                      f"±{50 * row['spread']:.1f}%", flush=True)
        if args.json:
            with open(args.json, "w") as file:
                json.dump(report, file, indent=2)
                file.write("\n")
    sys.exit(any(WRONG in skipped["reason"] for skipped in report["skipped"]))


if __name__ == "__main__":
    main()
