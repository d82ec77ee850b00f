"""Times the shapes of `cargo xtask bench` with PyTorch (cuBLAS on NVIDIA) and writes the same JSON.

    python3 torch_bench.py --shapes 4096x4096x4096,1x8192x8192:NT --json torch.json

TF32 is off, so f32 means f32. Inputs are random and rotated among sets larger than the cache.
"""

import argparse
import datetime
import json
import statistics

import torch

DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
FLOOR = ("4096x4096x4096,4096x4096x4096:NT,4096x4096x4096:TN,4096x4096x4096:TT,4095x4095x4095,4097x4097x4097,"
         "1x8192x8192,1x8192x8192:NT,8192x1x8192")


def parse(text):
    sizes, *fields = text.split(":")
    m, n, k = map(int, sizes.split("x"))
    layout = next((f.upper() for f in fields if f.upper() in ("NN", "NT", "TN", "TT")), "NN")
    dtype = next((f for f in fields if f in DTYPES), "f32")
    return m, n, k, layout, dtype


def matrix(rows, cols, transposed, dtype):
    stored = (cols, rows) if transposed else (rows, cols)
    values = torch.rand(stored, device="cuda", dtype=torch.float32).mul_(2).sub_(1).to(DTYPES[dtype])
    return values.t() if transposed else values


def seconds(work, repetitions):
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for i in range(repetitions):
        work(i)
    end.record()
    end.synchronize()
    return start.elapsed_time(end) * 1e-3 / repetitions


def measure(text, samples):
    m, n, k, layout, dtype = parse(text)
    size = (m * k + k * n + m * n) * DTYPES[dtype].itemsize
    sets = max(1, min(16, int(256e6 / size)))
    operands = [(matrix(m, k, layout[0] == "T", dtype), matrix(k, n, layout[1] == "T", dtype)) for _ in range(sets)]
    out = torch.empty((m, n), device="cuda", dtype=DTYPES[dtype])
    work = lambda i: torch.mm(*operands[i % sets], out=out)
    once = min(seconds(work, 1) for _ in range(3))
    repetitions = max(1, min(200, int(5e-3 / once)))
    seconds(work, repetitions)
    times = sorted(seconds(work, repetitions) for _ in range(samples))
    middle = statistics.median(times)
    return {
        "shape": text, "m": m, "n": n, "k": k, "layout": layout, "dtype": dtype, "kernel": "cublas", "ms": middle * 1e3,
        "spread": (times[-1] - times[0]) / middle, "tflops": 2 * m * n * k / middle * 1e-12, "gbs": size / middle * 1e-9,
        "roofline": 0.0, "method": "events",
    }


def copy_gbs():
    source = torch.rand(1 << 27, device="cuda")
    target = torch.empty_like(source)
    times = [seconds(lambda _: target.copy_(source), 5) for _ in range(7)]
    return 2 * source.numel() * 4 / statistics.median(times) * 1e-9


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", default=FLOOR)
    parser.add_argument("--samples", type=int, default=9)
    parser.add_argument("--json")
    args = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    report = {
        "library": f"torch {torch.__version__}", "adapter": torch.cuda.get_device_name(), "backend": "cuda",
        "driver": f"CUDA {torch.version.cuda}", "commit": "", "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "peak_tflops": 0.0, "peak_gbs": copy_gbs(), "rows": [measure(s, args.samples) for s in args.shapes.split(",")],
    }
    print(f"{report['library']} on {report['adapter']}, copy {report['peak_gbs']:.0f} GB/s")
    for row in report["rows"]:
        print(f"{row['shape']:24} {row['ms']:9.4f} ms {row['tflops']:8.2f} TFLOP/s {row['gbs']:7.0f} GB/s  ±{50 * row['spread']:.1f}%")
    if args.json:
        with open(args.json, "w") as file:
            json.dump(report, file, indent=2)
            file.write("\n")


if __name__ == "__main__":
    main()
