"""Times the shapes of `cargo xtask bench` with PyTorch (cuBLAS on NVIDIA) and writes the same JSON.

    python3 torch_bench.py --shapes 4096x4096x4096,1x8192x8192:NT:f16,1024x64x128:x96 \\
        --json torch.json
    python3 torch_bench.py --shapes @shapes.txt --json torch.json

A shape is MxNxK[:layout][:dtype][:format][:xBATCH][:experts][:prepared][:precision]. In a file they
are separated by commas or white space, and # begins a comment. With experts, e64 or zipf64, it is a
grouped product, and with ragged-k64 one of as many ranges of K: `_grouped_mm` in bf16, and a loop
of products in any type. Of quantized weights PyTorch multiplies those of 4 bits in groups, with
bf16 activations whatever the dtype says (`_weight_int4pack_mm`). Its operands have one form, and
its products one precision: `prepared`, `prepared-b` and a precision such as `split-f32` are for the
names of the rows alone.

f32 means f32: TF32 is off. Sums of f16 and bf16 are kept in f32. Inputs are random and rotate among
sets that together exceed the caches. The launches of a sample are replayed as one CUDA graph, so
that small products are not timed as the host's launches.
"""

import argparse
import datetime
import json
import re
import statistics
import typing

# `main` imports PyTorch, after it has read the arguments.
torch = None

DEVICE = "cuda"
DTYPES = {"f32": "float32", "f16": "float16", "bf16": "bfloat16"}
LAYOUTS = ("NN", "NT", "TN", "TT")
PREPARED = ("prepared", "prepared-b")
PRECISIONS = ("f32-sums", "split-f32", "split-f32-fast", "int16-activations", "f16-sums",
              "int8-activations")
GRAMMAR = "MxNxK[:layout][:dtype][:format][:xBATCH][:experts][:prepared][:precision]"
EXPERTS = re.compile(r"(e|zipf|ragged-k)([1-9]\d*)")
AFFINE = re.compile(r"affine-4bit-g(32|64|128)-(?:f16|bf16|f32)")
FLOOR = ("4096x4096x4096,4096x4096x4096:NT,4096x4096x4096:TN,4096x4096x4096:TT,"
         "4095x4095x4095,4097x4097x4097,1x8192x8192,1x8192x8192:NT,8192x1x8192")
ROTATED_BYTES = 256e6
MOST_SETS = 256
# An idle chip lowers its clock: it is kept busy for so many seconds before the first sample.
WARM_UP = 0.5


class Shape(typing.NamedTuple):
    m: int
    n: int
    k: int
    layout: str
    dtype: str
    batch: int
    weights: str
    experts: str
    prepared: str
    precision: str


def parse(text):
    """The shape of that name."""
    sizes, *fields = text.split(":")
    if not re.fullmatch(r"[1-9]\d*x[1-9]\d*x[1-9]\d*", sizes):
        raise SystemExit(f"{text!r}: wanted {GRAMMAR}")
    found = {}
    for field in fields:
        if field.upper() in LAYOUTS:
            what, value = "layout", field.upper()
        elif field in DTYPES:
            what, value = "dtype", field
        elif re.fullmatch(r"x[1-9]\d*", field):
            what, value = "batch", int(field[1:])
        elif AFFINE.fullmatch(field):
            what, value = "weights", field
        elif EXPERTS.fullmatch(field):
            what, value = "experts", field
        elif field in PREPARED:
            what, value = "prepared", field
        elif field in PRECISIONS:
            what, value = "precision", "" if field == "f32-sums" else field
        else:
            raise SystemExit(
                f"{text!r}: {field!r} is neither a layout, nor a dtype (f32, f16, bf16), "
                "nor affine weights of 4 bits (affine-4bit-g64-f16), nor a batch (x8), "
                "nor experts (e64, zipf64, ragged-k64), "
                f"nor what is prepared ({', '.join(PREPARED)}), "
                f"nor a precision ({', '.join(PRECISIONS)})"
            )
        if what in found:
            raise SystemExit(f"{text!r}: {field!r} is a second {what}")
        found[what] = value
    weights = found.get("weights", "")
    layout = found.get("layout", "NT" if weights else "NN")
    if weights and (layout != "NT" or found.get("batch", 1) > 1):
        raise SystemExit(f"{text!r}: quantized weights are one matrix, stored along K (NT)")
    m, n, k = map(int, sizes.split("x"))
    if weights and (k % int(AFFINE.fullmatch(weights)[1]) or k % 16 or n % 8):
        raise SystemExit(f"{text!r}: K must be whole groups of the weights, and N a multiple of 8")
    named = [found.get(what, "") for what in ("experts", "prepared", "precision")]
    if named[0] and (weights or found.get("batch", 1) > 1):
        raise SystemExit(f"{text!r}: experts are dense here, and have no batch")
    return Shape(m, n, k, layout, found.get("dtype", "f32"), found.get("batch", 1), weights, *named)


def torch_dtype(name):
    """PyTorch's dtype of that name."""
    return getattr(torch, DTYPES[name])


def names(text):
    """The shapes of a list, or of the file that @ precedes."""
    if text.startswith("@"):
        try:
            with open(text[1:]) as file:
                text = "\n".join(line.split("#")[0] for line in file)
        except (OSError, UnicodeDecodeError) as error:
            raise SystemExit(f"{text[1:]}: {error}")
    return [name for name in re.split(r"[,\s]+", text) if name]


def matrices(batch, rows, cols, transposed, dtype):
    """Random matrices in [-1, 1), [batch, rows, cols]."""
    stored = (batch, cols, rows) if transposed else (batch, rows, cols)
    values = torch.rand(stored, device=DEVICE).mul_(2).sub_(1).to(torch_dtype(dtype))
    return values.mT if transposed else values


def seconds(work):
    """Seconds of device time of what `work` launches."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    work()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) * 1e-3


def captured(work):
    """The launches of `work` as one graph; it must have run before, since libraries set themselves
    up in their first calls."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph.replay


def samples_of(product, count, eager):
    """`count` times of one `product(i)`, each from as many as fill about five milliseconds."""
    once = min(seconds(lambda: product(0)) for _ in range(3))
    repetitions = max(1, min(200, int(5e-3 / once)))

    def launches():
        for i in range(repetitions):
            product(i)

    launches()
    work = launches if eager else captured(launches)
    warm = 0.0
    while warm < WARM_UP:
        warm += seconds(work)
    return sorted(seconds(work) / repetitions for _ in range(count))


def products(operands, out):
    """The ways of PyTorch to compute `out[b] = a[b] @ b[b]` of the i-th operands, by name."""
    pick = lambda i: operands[i % len(operands)]
    batch, m, n = out.shape
    if batch > 1:
        return {"bmm": lambda i: torch.bmm(*pick(i), out=out)}
    operands = [(a[0], b[0]) for a, b in operands]
    out = out[0]
    ways = {"mm": lambda i: torch.mm(*pick(i), out=out)}
    if m == 1:
        ways["mv"] = lambda i: torch.mv(pick(i)[1].t(), pick(i)[0][0], out=out[0])
    elif n == 1:
        ways["mv"] = lambda i: torch.mv(pick(i)[0], pick(i)[1][:, 0], out=out[:, 0])
    return ways


def dense(shape):
    """The bytes of one product's operands, and the ways to compute it."""
    m, n, k, batch = shape.m, shape.n, shape.k, shape.batch
    layout, dtype = shape.layout, shape.dtype
    size = batch * (m * k + k * n + m * n) * torch_dtype(dtype).itemsize
    operands = [
        (matrices(batch, m, k, layout[0] == "T", dtype),
         matrices(batch, k, n, layout[1] == "T", dtype))
        for _ in range(sets(size))
    ]
    product = torch.empty((batch, m, n), device=DEVICE, dtype=torch_dtype(dtype))
    return size, products(operands, product)


def ends(name, rows):
    """The ends of the experts' rows: even shares, or 1/i of the first's for the i-th."""
    kind, count = EXPERTS.fullmatch(name).groups()
    shares = [1 / (i + 1) if kind == "zipf" else 1 for i in range(int(count))]
    sums = [sum(shares[:i + 1]) for i in range(len(shares))]
    return [int(part / sums[-1] * rows + 1e-9) for part in sums[:-1]] + [rows]


def grouped(shape):
    """As `dense`, with an entry of B for each expert."""
    m, n, k, dtype = shape.m, shape.n, shape.k, torch_dtype(shape.dtype)
    last = ends(shape.experts, m)
    parts = [(start, end) for start, end in zip([0] + last, last)]
    met = sum(start < end for start, end in parts)
    size = (m * k + met * k * n + m * n) * dtype.itemsize
    operands = [
        (matrices(1, m, k, shape.layout[0] == "T", shape.dtype)[0],
         matrices(len(parts), k, n, shape.layout[1] == "T", shape.dtype))
        for _ in range(max(1, min(4, sets(size))))
    ]
    pick = lambda i: operands[i % len(operands)]
    out = torch.empty((m, n), device=DEVICE, dtype=dtype)

    def loop(i):
        a, b = pick(i)
        for expert, (start, end) in enumerate(parts):
            if start < end:
                torch.mm(a[start:end], b[expert], out=out[start:end])

    ways = {"mm in a loop": loop}
    if shape.dtype == "bf16":
        offsets = torch.tensor(last, device=DEVICE, dtype=torch.int32)
        ways["_grouped_mm"] = lambda i: torch._grouped_mm(*pick(i), offs=offsets)
    return size, ways


def along_k(shape):
    """As `dense`, with a product of each range of K."""
    m, n, k, dtype = shape.m, shape.n, shape.k, torch_dtype(shape.dtype)
    last = ends(shape.experts, k)
    parts = list(zip([0] + last, last))
    size = (m * k + k * n + len(parts) * m * n) * dtype.itemsize
    operands = [
        (matrices(1, m, k, shape.layout[0] == "T", shape.dtype)[0],
         matrices(1, k, n, shape.layout[1] == "T", shape.dtype)[0])
        for _ in range(max(1, min(4, sets(size))))
    ]
    pick = lambda i: operands[i % len(operands)]
    out = torch.empty((len(parts), m, n), device=DEVICE, dtype=dtype)

    def loop(i):
        a, b = pick(i)
        for entry, (start, end) in enumerate(parts):
            torch.mm(a[:, start:end], b[start:end], out=out[entry])

    ways = {"mm in a loop": loop}
    if shape.dtype == "bf16":
        offsets = torch.tensor(last, device=DEVICE, dtype=torch.int32)
        ways["_grouped_mm"] = lambda i: torch._grouped_mm(*pick(i), offs=offsets)
    return size, ways


def quantized(shape):
    """As `dense`, of weights of 4 bits with a scale and a zero to each group."""
    m, n, k, group = shape.m, shape.n, shape.k, int(AFFINE.fullmatch(shape.weights)[1])
    size = (m * k + m * n + n * k // group * 2) * 2 + n * k // 2

    def operand():
        codes = torch.randint(0, 256, (n, k // 2), device=DEVICE, dtype=torch.uint8)
        packed = torch._convert_weight_to_int4pack(codes, 8)
        scales = torch.rand((k // group, n, 2), device=DEVICE).sub_(0.5).to(torch.bfloat16)
        return matrices(1, m, k, False, "bf16")[0], packed, scales

    operands = [operand() for _ in range(sets(size))]

    def product(i):
        x, packed, scales = operands[i % len(operands)]
        return torch._weight_int4pack_mm(x, packed, group, scales)

    return size, {"_weight_int4pack_mm": product}


def sets(size):
    """How many operands of so many bytes exceed the caches."""
    return max(1, min(MOST_SETS, int(ROTATED_BYTES / size)))


def measure(text, count, eager):
    """The row of one shape: the fastest of PyTorch's ways to compute it."""
    shape = parse(text)
    kind = quantized if shape.weights else grouped if shape.experts else dense
    if shape.experts.startswith("ragged-k"):
        kind = along_k
    size, ways = kind(shape)
    timed = {way: samples_of(product, count, eager) for way, product in ways.items()}
    way, times = min(timed.items(), key=lambda item: statistics.median(item[1]))
    middle = statistics.median(times)
    operations = 2 * shape.batch * shape.m * shape.n * shape.k
    return {
        "shape": text, **shape._asdict(), "kernel": f"torch.{way}", "ms": middle * 1e3,
        "spread": (times[-1] - times[0]) / middle,
        "tflops": operations / middle * 1e-12, "gbs": size / middle * 1e-9,
        "roofline": 0.0, "method": "events" if eager else "events around a graph",
    }


def copy_gbs():
    """Bytes read and written per second by copying half a gigabyte, in 10^9."""
    source = torch.rand(1 << 27, device=DEVICE)
    target = torch.empty_like(source)
    times = samples_of(lambda _: target.copy_(source), 7, eager=True)
    return 2 * source.nbytes / statistics.median(times) * 1e-9


def positive(text):
    """A count from 1 up."""
    if not re.fullmatch(r"[1-9]\d*", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 up")
    return int(text)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--shapes", default=FLOOR, help="shapes separated by commas, or @FILE")
    parser.add_argument("--samples", type=positive, default=9)
    parser.add_argument(
        "--eager", action="store_true", help="launch one by one instead of replaying a CUDA graph"
    )
    parser.add_argument("--commit", default="", help="goes into the JSON")
    parser.add_argument("--json", help="file to write")
    args = parser.parse_args()
    shapes = names(args.shapes)
    if not shapes:
        raise SystemExit("--shapes: no shape is named")
    for shape in shapes:
        parse(shape)
    global torch
    import torch

    torch.set_float32_matmul_precision("highest")
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False

    report = {
        "library": f"torch {torch.__version__}",
        "adapter": torch.cuda.get_device_name(), "backend": "cuda",
        "driver": f"CUDA {torch.version.cuda}", "commit": args.commit,
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "peak_tflops": 0.0, "peak_gbs": copy_gbs(), "rows": [],
    }
    heading = f"{report['library']} on {report['adapter']}, copy {report['peak_gbs']:.0f} GB/s"
    print(heading, flush=True)
    for shape in shapes:
        row = measure(shape, args.samples, args.eager)
        report["rows"].append(row)
        print(f"{shape:44} {row['kernel']:26} {row['ms']:9.4f} ms "
              f"{row['tflops']:8.2f} TFLOP/s {row['gbs']:7.0f} GB/s "
              f"±{50 * row['spread']:.1f}%", flush=True)
        if args.json:
            with open(args.json, "w") as file:
                json.dump(report, file, indent=2)
                file.write("\n")


if __name__ == "__main__":
    main()
