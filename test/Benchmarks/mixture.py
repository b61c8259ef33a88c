#!/usr/bin/env python3
"""A block of experts with its router, forward and backward: ours against the faster of two ways to
write it in PyTorch, and against the floor of its products.

    test/Benchmarks/mixture.py --torch-python /path/to/python [--rounds 3]

2048 tokens of width 512. "loop" is the form of Hugging Face's classes: for each expert its tokens, one
index_add. "sorted" sorts tokens by expert once, so that each expert has a slice. The sides take turns;
a figure is the least of all. The floor is the products' flops at the better of two peaks: PyTorch's
matmul and ours.
"""
import json
import os
import pathlib
import subprocess
import tempfile

import cases
import floors
import train_step

TOKENS, WIDTH = cases.BATCH * cases.SEQUENCE, 512
# Experts, choices of a token, width of an expert.
BLOCKS = ((8, 2, 1792), (64, 8, WIDTH // 2))
DIMS = "#transformer.dims"
MODEL = """
#bs = {d}<batch, sequence>
!x = tensor<?x?x{h}xf32, {d}<batch, sequence, embed>>
!r = tensor<?x?x{e}xf32, {d}<batch, sequence, routed>>
!c = tensor<?x?x{k}xi32, {d}<batch, sequence, choices>>
!p = tensor<?x?x{k}xf32, {d}<batch, sequence, choices>>
!t = tensor<256x{h}xf32, {d}<vocab, embed>>
!w = tensor<{e}x{f}x{h}xf32, {d}<experts, expert_ffn, embed>>
!v = tensor<{e}x{h}x{f}xf32, {d}<experts, embed, expert_ffn>>
!g = tensor<{e}x{h}xf32, {d}<routed, embed>>
module @mixture {{
  func.func @loss(%tokens: tensor<?x?xi32, #bs>, %targets: tensor<?x?xi32, #bs>) -> tensor<f32> {{
    %table = transformer.parameter "table" init <normal, 0.0, 1.0> : !t
    %router = transformer.parameter "router" init <normal, 0.0, 0.02> : !g
    %gate = transformer.parameter "gate" init <normal, 0.0, 0.02> : !w
    %up = transformer.parameter "up" init <normal, 0.0, 0.02> : !w
    %down = transformer.parameter "down" init <normal, 0.0, 0.02> : !v
    %x = transformer.embedding %table, %tokens : !t, tensor<?x?xi32, #bs> -> !x
    %logits = transformer.contract "bse,re->bsr" %x, %router : !x, !g -> !r
    %chosen = transformer.top_k %logits : !r -> !c
    %picked = transformer.pick %logits at %chosen : !r, !c -> !p
    %weights = transformer.softmax %picked : !p
    %y = transformer.experts silu %x, %chosen, %weights gate %gate up %up down %down : !x, !c, !p, !w, !v
    %loss = transformer.head_loss %y, %table, %targets scale 1.0 : !x, !t, tensor<?x?xi32, #bs> -> tensor<f32>
    return %loss : tensor<f32>
  }}
}}
"""
TORCH = """
import json, sys, time, torch
precision, threads, tokens, h, e, k, f = sys.argv[1], *map(int, sys.argv[2:])
torch.set_num_threads(threads)
silu, linear = torch.nn.functional.silu, torch.nn.functional.linear
make = lambda *shape: (0.02 * torch.randn(*shape)).requires_grad_()
router = make(e, h)
# A leaf for each expert, as modules have: a slice's gradient would be as large as all.
gates, ups, downs = ([make(*shape) for _ in range(e)] for shape in ((f, h), (f, h), (h, f)))
x, dy = torch.randn(tokens, h, requires_grad=True), torch.randn(tokens, h)
def route():
    values, choices = linear(x, router).float().topk(k, dim=-1)
    return values.softmax(dim=-1), choices
def expert(i, rows):
    return linear(silu(linear(rows, gates[i])) * linear(rows, ups[i]), downs[i])
def loop():
    weights, choices = route()
    y = torch.zeros_like(x)
    for i in range(e):
        token, place = torch.where(choices == i)
        if len(token):
            y = y.index_add(0, token, (expert(i, x[token]) * weights[token, place, None]).to(y.dtype))
    return y
def ordered():
    weights, choices = route()
    order = choices.flatten().argsort()
    counts = choices.flatten().bincount(minlength=e).tolist()
    rows = x[order // k].split(counts)
    out = torch.cat([expert(i, part) for i, part in enumerate(rows)]) * weights.flatten()[order, None]
    return torch.zeros_like(x).index_add(0, order // k, out.to(x.dtype))
best = {}
for name, run in (("loop", loop), ("sorted", ordered)):
    times = []
    for _ in range(4):
        for leaf in (x, router, *gates, *ups, *downs):
            leaf.grad = None
        start = time.perf_counter()
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            y = run()
        y.backward(dy)
        times.append((time.perf_counter() - start) * 1e3)
    best[name] = min(times[1:])
print(json.dumps(best))
"""
# Of the head, the embedding and what a step begins with: not the block's.
BESIDE = ("loss", "table", "zero ")


def call(command, folder):
    done = subprocess.run([str(part) for part in command], cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]}: {done.stderr[-800:]}")
    return done.stdout


def ours(options, folder, precision, block):
    experts, choices, ffn = block
    (folder / "mixture.mlir").write_text(MODEL.format(d=DIMS, h=WIDTH, e=experts, k=choices, f=ffn))
    (folder / "spec.toml").write_text(cases.spec(precision))
    (folder / "tokens.txt").write_bytes(os.urandom(40000).hex().encode())
    call([options.bin / "meshwork", "compile", "mixture.mlir", "--spec", "spec.toml", "-o", "mixture.mwplan"], folder)
    call([options.bin / "meshwork-run", "mixture.mwplan", "--data", "tokens.txt", "--tokenizer", "bytes", "--steps", "4",
          "--threads", options.threads, "--profile-json", "profile.json"], folder)
    rows = json.loads((folder / "profile.json").read_text())["instructions"]
    return sum(row["ms_per_step"] for row in rows if row["phase"] in ("forward", "backward")
               and not any(part in row["name"] for part in BESIDE))


def theirs(options, precision, block):
    experts, choices, ffn = block
    return json.loads(call([options.torch_python, "-c", TORCH, precision, options.threads, TOKENS, WIDTH, experts,
                            choices, ffn], None))


def floor_ms(block, gflops):
    experts, choices, ffn = block
    flops = 3 * 2 * TOKENS * WIDTH * (3 * choices * ffn + experts)
    return flops / gflops / 1e6


def main():
    options = cases.arguments(__doc__)
    results = {}
    peaks = floors.best([train_step.peaks_of_torch(options), train_step.our_peaks(options)])
    with tempfile.TemporaryDirectory() as name:
        for precision in ("bf16", "f32"):
            for block in BLOCKS:
                turns = [(ours(options, pathlib.Path(name), precision, block), theirs(options, precision, block))
                         for _ in range(options.rounds)]
                mine, floor = min(turn[0] for turn in turns), floor_ms(block, peaks[precision])
                other = {way: min(turn[1][way] for turn in turns) for way in turns[0][1]}
                best = min(other, key=other.get)
                results[f"{precision} {block}"] = {"ours_ms": mine, "torch_ms": other, "floor_ms": floor}
                print(f"{block[0]} experts, {block[1]} a token, {precision}: ours {mine:.0f} ms, "
                      f"{mine / floor:.2f} of the floor; PyTorch {other[best]:.0f} ms ({best}), "
                      f"{other[best] / mine:.2f} times ours", flush=True)
    if options.output:
        pathlib.Path(options.output).write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
