#!/usr/bin/env python3
"""Causal attention, forward and backward, against PyTorch's scaled_dot_product_attention.

    test/Benchmarks/attention.py --torch-python /path/to/python [--bench build/bin/bench_cpu] [--rounds 3]

The sides take turns on the same threads; a figure is the least of all. Ours is also told as a
multiple of its products' floor: what they take at the rate of a product in cache, measured in
the same run. `bench_cpu` is built with -DMESHWORK_BENCHMARKS=ON (preset `release`).
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
CASES = ((4096, 12), (16384, 4))  # tokens, heads of 64
TORCH = """
import json, sys, time, torch
from torch.nn.functional import scaled_dot_product_attention as attention
threads, precision, heads, tokens = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
torch.set_num_threads(threads)
clock = time.process_time if threads == 1 else time.perf_counter  # as bench_cpu
dtype = {"f32": torch.float32, "bf16": torch.bfloat16}[precision]
make = lambda: torch.randn(1, tokens, heads, 64).to(dtype).transpose(1, 2)
q, k, v, dout = make().requires_grad_(), make().requires_grad_(), make().requires_grad_(), make()
forward, backward = [], []
for _ in range(3):
    start = clock()
    out = attention(q, k, v, is_causal=True)
    middle = clock()
    out.backward(dout)
    forward.append(middle - start)
    backward.append(clock() - middle)
print(json.dumps({"torch": torch.__version__, "forward": min(forward) * 1e3, "backward": min(backward) * 1e3}))
"""
LINE = re.compile(r"attention (forward|backward).*: ([\d.]+) ms, [\d.]+ of its products' ([\d.]+) ms")


def call(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]}: {done.stderr[-800:]}")
    return done.stdout


def ours(options, *case):
    found = LINE.findall(call(options.bench, "attention", options.threads, *case))
    return {name: (float(ms), float(floor)) for name, ms, floor in found}


def theirs(options, *case):
    return json.loads(call(options.torch_python, "-c", TORCH, options.threads, *case))


def compare(options, precision, heads, tokens):
    turns = [(ours(options, precision, heads, tokens), theirs(options, precision, heads, tokens))
             for _ in range(options.rounds)]
    row = {"precision": precision, "heads": heads, "tokens": tokens, "torch": turns[0][1]["torch"]}
    for pass_ in ("forward", "backward"):
        row[f"{pass_}_ms"], row[f"{pass_}_floor_ms"] = (min(t[0][pass_][i] for t in turns) for i in (0, 1))
        row[f"{pass_}_torch_ms"] = min(t[1][pass_] for t in turns)
    for what in ("ms", "floor_ms", "torch_ms"):
        row[what] = row[f"forward_{what}"] + row[f"backward_{what}"]
    return row


def tell(row):
    print(f"{row['precision']} {row['tokens']} tokens, {row['heads']} heads: ours {row['ms']:.0f} ms "
          f"({row['forward_ms']:.0f} + {row['backward_ms']:.0f}), {row['ms'] / row['floor_ms']:.2f} of its products; "
          f"PyTorch {row['torch']} {row['torch_ms']:.0f} ms ({row['forward_torch_ms']:.0f} + "
          f"{row['backward_torch_ms']:.0f}), {row['torch_ms'] / row['ms']:.2f} times ours", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--torch-python", default=sys.executable)
    parser.add_argument("--bench", type=lambda text: pathlib.Path(text).resolve(), default=ROOT / "build" / "bin" / "bench_cpu")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--output", help="a file for the figures as JSON")
    options = parser.parse_args()
    rows = []
    for tokens, heads in CASES:
        for precision in ("f32", "bf16"):
            rows.append(compare(options, precision, heads, tokens))
            tell(rows[-1])
    if options.output:
        pathlib.Path(options.output).write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
