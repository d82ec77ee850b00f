"""Times the operations of `--bin ops` with PyTorch, eager kernels replayed as one CUDA graph.

    python3 torch_ops.py --shape 4096 4096 --dtype f16
"""

import argparse
import statistics

import torch
import torch.nn.functional as F

ROTATED = 256 << 20
DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}


def rotate_half(x, cos, sin):
    """Llama's rotary embedding, as its authors write it."""
    half = x.shape[-1] // 2
    turned = torch.cat((-x[..., half:], x[..., :half]), dim=-1)
    return x * torch.cat((cos, cos), -1) + turned * torch.cat((sin, sin), -1)


def main():
    """Prints a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--shape", type=int, nargs=2, default=[4096, 4096])
    parser.add_argument("--dtype", choices=DTYPES, default="f16")
    parser.add_argument("--samples", type=int, default=50)
    args = parser.parse_args()
    rows, columns = args.shape
    dtype = DTYPES[args.dtype]
    size = rows * columns * dtype.itemsize
    count = max(2, -(-ROTATED // (2 * size)))
    make = lambda *shape: torch.rand(*shape, device="cuda").mul_(2).sub_(1).to(dtype)
    xs = [make(rows, columns) for _ in range(count)]
    ys = [make(rows, columns) for _ in range(count)]
    outs = [make(rows, columns) for _ in range(count)]
    weight, bias = make(columns), make(columns)
    cos, sin = make(rows, columns // 2), make(rows, columns // 2)
    index = torch.randint(0, rows, (rows,), device="cuda")
    keys = torch.randint(0, 256, (1 << 17,), device="cuda", dtype=torch.uint8)
    mask = torch.full((rows, columns), float("-inf"), device="cuda", dtype=dtype).triu(1)
    operations = [
        ("copy", lambda i: outs[i].copy_(xs[i])),
        ("softmax", lambda i: F.softmax(xs[i], -1)),
        ("causal softmax", lambda i: F.softmax(xs[i] * 0.125 + mask, -1)),
        ("layer_norm", lambda i: F.layer_norm(xs[i], (columns,), weight, bias, 1e-5)),
        ("rms_norm", lambda i: F.rms_norm(xs[i], (columns,), weight, 1e-5)),
        ("gelu_erf", lambda i: F.gelu(xs[i])),
        ("add", lambda i: torch.add(xs[i], ys[i], out=outs[i])),
        ("rope", lambda i: rotate_half(xs[i], cos, sin)),
        ("sum of rows", lambda i: xs[i].sum(1)),
        ("sum of columns", lambda i: xs[i].sum(0)),
        ("gather", lambda i: torch.index_select(xs[i], 0, index, out=outs[i])),
        ("sort", lambda i: keys.sort(stable=True)),
    ]
    print(torch.cuda.get_device_name(), "PyTorch", torch.__version__)
    print("| operation | µs |")
    print("|---|---:|")
    for name, work in operations:
        for i in range(count):
            work(i)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for i in range(2 * count):
                work(i % count)
        times = []
        for _ in range(args.samples + 5):
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            graph.replay()
            end.record()
            end.synchronize()
            times.append(start.elapsed_time(end) * 1e3 / (2 * count))
        print(f"| {name} | {statistics.median(times[5:]):.1f} |")
        del graph
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
