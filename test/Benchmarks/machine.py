"""What this machine can do at most, measured with PyTorch's matmul and copy:

    python machine.py 2        ->  {"f32": GFLOP/s, "bf16": GFLOP/s, "copy": GB/s}

The best of a few tries of a few shapes: a floor is only a floor when nothing was
faster. Copy counts bytes read and bytes written, on arrays beyond every cache.
"""
import json
import sys
import time

import torch

SHAPES = ((2048, 768, 3072), (2048, 2048, 2048), (2048, 768, 50304))
COPY_BYTES = 1 << 29


def best_seconds(run, tries=5):
    run()
    times = []
    for _ in range(tries):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def matmul_gflops(dtype):
    rates = []
    for m, k, n in SHAPES:
        a, b = torch.randn(m, k, dtype=dtype), torch.randn(k, n, dtype=dtype)
        out = torch.empty(m, n, dtype=dtype)
        seconds = best_seconds(lambda: torch.mm(a, b, out=out))
        rates.append(2 * m * k * n / seconds / 1e9)
    return max(rates)


def copy_gbytes():
    a = torch.ones(COPY_BYTES // 4)
    b = torch.empty_like(a)
    return 2 * COPY_BYTES / best_seconds(lambda: b.copy_(a)) / 1e9


def main():
    torch.set_num_threads(int(sys.argv[1]))
    print(json.dumps({"f32": matmul_gflops(torch.float32),
                      "bf16": matmul_gflops(torch.bfloat16), "copy": copy_gbytes()}))


if __name__ == "__main__":
    main()
