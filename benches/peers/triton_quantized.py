"""Times products of 4-bit experts with Triton kernels: element = scale · code + bias, in groups of
64 along K, as tilewise's affine-4bit-g64-f16; f16, sums in f32.

    python3 triton_quantized.py --shape 1408x2048 --experts 64 --rows 1,4,32,128

Prints one line for each number of rows, the same to each expert: milliseconds by the tensor cores
or, for one row, by multiply-adds. Then one token for 8 of the experts: a kernel that does nothing,
one that only reads what the product must read, and the product. Each is the fastest of several
tiles, and each time the median of replayed CUDA graphs. Launches take turns at weights that caches
do not hold. Each product is checked against f32. The kernel that only reads has no result to check,
and its time is no least time: it reads a scale and a bias for each word of codes.
"""

import argparse
import itertools

import torch
import triton
import triton.language as tl

GROUP: tl.constexpr = tl.constexpr(64)
# Columns, steps along K and warps of a program with one row.
SINGLE = list(itertools.product([4, 8, 16], [1024, 2048], [2, 4, 8]))


@triton.jit
def numbers(codes, scales, biases, line, at, K: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """BN × BK weights in f16: rows `line` of B, from step `at` along K on."""
    words = tl.load(codes + line[:, None] * (K // 8) + at // 8 + tl.arange(0, BK // 8)[None, :])
    few = (words[:, :, None] >> (tl.arange(0, 8) * 4)[None, None, :]) & 15
    few = few.to(tl.float16).reshape(BN, BK // GROUP, GROUP)
    group = line[:, None] * (K // GROUP) + at // GROUP + tl.arange(0, BK // GROUP)[None, :]
    scale = tl.load(scales + group)[:, :, None]
    return (few * scale + tl.load(biases + group)[:, :, None]).reshape(BN, BK)


@triton.jit
def tiles(x, codes, scales, biases, y, rows, N: tl.constexpr, K: tl.constexpr, BM: tl.constexpr,
          BN: tl.constexpr, BK: tl.constexpr):
    expert = tl.program_id(1)
    line = expert * N + tl.program_id(0) * BN + tl.arange(0, BN)
    row = tl.program_id(2) * BM + tl.arange(0, BM)
    sums = tl.zeros((BM, BN), tl.float32)
    for at in range(0, K, BK):
        left = tl.load(x + (expert * rows + row)[:, None] * K + at + tl.arange(0, BK)[None, :],
                       row[:, None] < rows, 0.0)
        right = numbers(codes, scales, biases, line, at, K, BN, BK)
        sums = tl.dot(left, right.trans(), sums)
    tl.store(y + (expert * rows + row)[:, None] * N + (line - expert * N)[None, :],
             sums.to(tl.float16), row[:, None] < rows)


@triton.jit
def single(x, codes, scales, biases, y, experts, N: tl.constexpr, K: tl.constexpr,
           BN: tl.constexpr, BK: tl.constexpr, READS: tl.constexpr):
    """One row to each of some experts. READS: adds codes, scales and biases as numbers alone."""
    place = tl.program_id(1)
    line = tl.load(experts + place) * N + tl.program_id(0) * BN + tl.arange(0, BN)
    sums = tl.zeros((BN, BK // 8), tl.float32)
    for at in range(0, K, BK):
        words = tl.load(codes + line[:, None] * (K // 8) + at // 8 + tl.arange(0, BK // 8)[None, :])
        step = at // 8 + tl.arange(0, BK // 8)
        group = line[:, None] * (K // GROUP) + (step // (GROUP // 8))[None, :]
        scale = tl.load(scales + group).to(tl.float32)
        bias = tl.load(biases + group).to(tl.float32)
        if READS:
            sums += words.to(tl.float32) + scale + bias
        else:
            for i in tl.static_range(8):
                element = tl.load(x + place * K + step * 8 + i).to(tl.float32)
                code = ((words >> (4 * i)) & 15).to(tl.float32)
                sums += element[None, :] * (scale * code + bias)
    to = y + place * N + line % N
    tl.store(to, tl.sum(sums, 1).to(tl.float16))


@triton.jit
def nothing(y):
    if tl.program_id(0) < 0:
        tl.store(y, 0.0)


class Experts:
    def __init__(self, count, n, k):
        self.shape = (count, n, k)
        codes = torch.randint(0, 16, (count, n, k), device="cuda", dtype=torch.int32)
        shifts = torch.arange(0, 32, 4, device="cuda", dtype=torch.int32)
        self.codes = (codes.view(count, n, k // 8, 8) << shifts).sum(-1).to(torch.int32)
        size = (count, n, k // 64)
        self.scales = torch.rand(size, device="cuda").half() * 0.02 + 0.01
        self.biases = -8 * self.scales
        numbers = codes.view(*size, 64) * self.scales[..., None].float()
        self.weights = (numbers + self.biases[..., None].float()).view(count, n, k)

    def arguments(self):
        return self.codes, self.scales, self.biases


def timed(launches, check):
    """Milliseconds of a launch; infinite if this form does not compile or fit."""
    try:
        for launch in launches:
            launch()
        check()
    except (triton.runtime.errors.OutOfResources, triton.compiler.errors.CompilationError):
        return float("inf")
    run = lambda: [launch() for launch in launches]
    return triton.testing.do_bench_cudagraph(run, return_mode="median") / len(launches)


def near(y, right):
    torch.testing.assert_close(y.float(), right, rtol=1e-2, atol=0.02 * right.abs().max().item())


def one_row(launched, x, y, reads, check):
    """One row to each of the experts named beside each set: milliseconds, and the form."""
    _, n, k = launched[0][0].shape
    best = (float("inf"), "")
    for bn, bk, warps in SINGLE:
        if n % bn == 0 and k % bk == 0:
            y.fill_(float("nan"))
            launches = [lambda s=s, e=e: single[(n // bn, len(e))](
                x, *s.arguments(), y, e, n, k, bn, bk, reads, num_warps=warps)
                for s, e in launched]
            best = min(best, (timed(launches, check), f"{bn}x{bk}, {warps} warps"))
    return best


def shared_rows(sets, rows):
    """The same number of rows to each expert: milliseconds, and the form."""
    count, n, k = sets[0].shape
    x = torch.randn(count, rows, k, device="cuda", dtype=torch.float16)
    y = torch.empty(count, rows, n, device="cuda", dtype=torch.float16)
    right = torch.einsum("emk,enk->emn", x.float(), sets[-1].weights)
    every = torch.arange(count, device="cuda", dtype=torch.int32)
    check = lambda: near(y, right)
    if rows == 1:
        return one_row([(s, every) for s in sets], x, y, False, check)
    best = (float("inf"), "")
    bm = min(128, max(16, triton.next_power_of_2(rows)))
    for bn, bk, stages in itertools.product([32, 64, 128], [64, 128], [2, 3, 4]):
        warps = 8 if bm == 128 else 4
        if n % bn == 0:
            y.fill_(float("nan"))
            launches = [lambda s=s: tiles[(n // bn, count, triton.cdiv(rows, bm))](
                x, *s.arguments(), y, rows, n, k, bm, bn, bk, num_warps=warps,
                num_stages=stages) for s in sets]
            took = timed(launches, check)
            best = min(best, (took, f"{bm}x{bn}x{bk}, {warps} warps, {stages} stages"))
    return best


def one_token(sets, reads, some=8):
    """One row to each of `some` experts, which are others in every launch."""
    count, n, k = sets[0].shape
    x = torch.randn(some, k, device="cuda", dtype=torch.float16)
    y = torch.empty(some, n, device="cuda", dtype=torch.float16)
    chosen = [(s, torch.randperm(count, device="cuda").to(torch.int32)[:some])
              for s in sets for _ in range(8)]
    last, picks = chosen[-1]
    right = torch.einsum("ek,enk->en", x.float(), last.weights[picks.long()])
    return one_row(chosen, x, y, reads, (lambda: None) if reads else (lambda: near(y, right)))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", default="1408x2048", help="N×K of an expert")
    parser.add_argument("--experts", type=int, default=64)
    parser.add_argument("--rows", default="1,4,32,128")
    parser.add_argument("--sets", type=int, default=2, help="copies of all weights to take turns")
    arguments = parser.parse_args()
    n, k = map(int, arguments.shape.split("x"))
    print(f"Triton {triton.__version__}, torch {torch.__version__}, "
          f"{torch.cuda.get_device_name()}")
    sets = [Experts(arguments.experts, n, k) for _ in range(arguments.sets)]
    for rows in map(int, arguments.rows.split(",")):
        took, form = shared_rows(sets, rows)
        print(f"{rows} rows to each of {arguments.experts} of {n}×{k}: {took:.4f} ms ({form})")
    y = torch.empty(1, device="cuda")
    idle = timed([lambda: nothing[(8 * n // 32,)](y)] * 16, lambda: None)
    print(f"one token, 8 experts: a kernel that does nothing {idle:.4f} ms")
    for reads, name in [(True, "reads alone"), (False, "the product")]:
        took, form = one_token(sets, reads)
        print(f"one token, 8 experts: {name} {took:.4f} ms ({form})")


if __name__ == "__main__":
    main()
