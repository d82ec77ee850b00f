"""Times a grouped product of square matrices with a Triton kernel of few programs, each of which
takes tile after tile of all products, and with torch.mm in a loop; f16, sums in f32.

    python3 triton_grouped.py --sizes 1024,512,256,128 --groups 4

Prints one line for each size: milliseconds of both, medians of replayed CUDA graphs. The kernel is
measured in several tiles and numbers of programs, and the fastest counts. Each result is checked
against torch.mm first.
"""

import argparse

import torch
import triton
import triton.language as tl


@triton.jit
def grouped(places, sizes, groups, PROGRAMS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
            BK: tl.constexpr):
    tile = tl.program_id(0)
    before = 0
    for g in range(groups):
        m = tl.load(sizes + 3 * g)
        n = tl.load(sizes + 3 * g + 1)
        k = tl.load(sizes + 3 * g + 2)
        columns = tl.cdiv(n, BN)
        end = before + tl.cdiv(m, BM) * columns
        a = tl.load(places + 3 * g).to(tl.pointer_type(tl.float16))
        b = tl.load(places + 3 * g + 1).to(tl.pointer_type(tl.float16))
        c = tl.load(places + 3 * g + 2).to(tl.pointer_type(tl.float16))
        while tile >= before and tile < end:
            row = (tile - before) // columns * BM + tl.arange(0, BM)
            col = (tile - before) % columns * BN + tl.arange(0, BN)
            at = tl.arange(0, BK)
            sums = tl.zeros((BM, BN), tl.float32)
            for step in range(tl.cdiv(k, BK)):
                inner = step * BK + at
                left = tl.load(a + row[:, None] * k + inner[None, :],
                               (row[:, None] < m) & (inner[None, :] < k), 0.0)
                right = tl.load(b + inner[:, None] * n + col[None, :],
                                (inner[:, None] < k) & (col[None, :] < n), 0.0)
                sums = tl.dot(left, right, sums)
            tl.store(c + row[:, None] * n + col[None, :], sums.to(tl.float16),
                     (row[:, None] < m) & (col[None, :] < n))
            tile += PROGRAMS
        before = end


def times(size, groups):
    """Milliseconds of the kernel, of its best form, and of the loop."""
    def operands():
        return [torch.randn(size, size, device="cuda", dtype=torch.float16) for _ in range(groups)]

    a, b = operands(), operands()
    c = [torch.full_like(one, float("nan")) for one in a]
    places = torch.tensor([one.data_ptr() for three in zip(a, b, c) for one in three],
                          device="cuda")
    sizes = torch.full((3 * groups,), size, device="cuda", dtype=torch.int32)
    cores = torch.cuda.get_device_properties(0).multi_processor_count
    best = (float("inf"), "")
    for bm, bn, bk, warps in [(64, 64, 32, 4), (64, 64, 64, 4), (128, 64, 64, 4),
                              (128, 128, 32, 4), (128, 128, 64, 8), (32, 64, 64, 4)]:
        for programs in [cores // 2, cores, 2 * cores]:
            def run():
                grouped[(programs,)](places, sizes, groups, programs, bm, bn, bk, num_warps=warps)

            run()
            for one, left, right in zip(c, a, b):
                torch.testing.assert_close(one, left @ right, rtol=1e-2, atol=0.05 * size ** 0.5)
            took = triton.testing.do_bench_cudagraph(run, return_mode="median")
            best = min(best, (took, f"{bm}x{bn}x{bk}, {programs} programs"))
    loop = triton.testing.do_bench_cudagraph(
        lambda: [torch.mm(left, right, out=one) for one, left, right in zip(c, a, b)],
        return_mode="median")
    return best, loop


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="1024,512,256,128")
    parser.add_argument("--groups", type=int, default=4)
    arguments = parser.parse_args()
    print(f"Triton {triton.__version__}, torch {torch.__version__}, "
          f"{torch.cuda.get_device_name()}")
    for size in map(int, arguments.sizes.split(",")):
        (kernel, form), loop = times(size, arguments.groups)
        print(f"{arguments.groups} of {size}³: Triton {kernel:.4f} ms ({form}), "
              f"torch.mm in a loop {loop:.4f} ms")


if __name__ == "__main__":
    main()
