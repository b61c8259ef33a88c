#!/usr/bin/env python3
"""Head and cross-entropy, forward and backward: ours, in chunks of tokens, against the
unfused pair of PyTorch, whose logits are whole.

    test/Benchmarks/head.py --torch-python /path/to/python [--rounds 3]

GPT-2's sizes: 2048 tokens, width 768, 50257 words. The sides take turns; a figure is the
least of all. Memory is what lives beside the weights: by the plan on our side, and on the
other the logits and their gradient, as little as any implementation of the pair can hold.
"""
import json
import os
import pathlib
import subprocess
import tempfile

import cases

TOKENS, WIDTH, WORDS = cases.BATCH * cases.SEQUENCE, 768, 50257
DIMS = "#transformer.dims"
MODEL = """
#bs = {d}<batch, sequence>
#bse = {d}<batch, sequence, embed>
#ve = {d}<vocab, embed>
module @head {{
  func.func @loss(%tokens: tensor<?x?xi32, #bs>, %targets: tensor<?x?xi32, #bs>) -> tensor<f32> {{
    %table = transformer.parameter "table" init <normal, 0.0, 0.02> : {w}
    %head = transformer.parameter "head" init <normal, 0.0, 0.02> : {w}
    %x = transformer.embedding %table, %tokens : {w}, tensor<?x?xi32, #bs> -> tensor<?x?x{e}xf32, #bse>
    %loss = transformer.head_loss %x, %head, %targets scale 1.0 : tensor<?x?x{e}xf32, #bse>, {w}, tensor<?x?xi32, #bs> -> tensor<f32>
    return %loss : tensor<f32>
  }}
}}
""".format(d=DIMS, e=WIDTH, w=f"tensor<{WORDS}x{WIDTH}xf32, #ve>")
TORCH = """
import json, sys, time, torch
precision, threads = sys.argv[1], int(sys.argv[2])
torch.set_num_threads(threads)
x = torch.randn({t}, {e}, requires_grad=True)
w = (0.02 * torch.randn({v}, {e})).requires_grad_()
y = torch.randint({v}, ({t},))
def pair():
    with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
        loss = torch.nn.functional.cross_entropy(torch.nn.functional.linear(x, w), y)
    loss.backward()
best = dict()
for name, run in (("eager", pair), ("compile", torch.compile(pair))):
    run()
    times = []
    for _ in range(3):
        start = time.perf_counter()
        run()
        times.append((time.perf_counter() - start) * 1e3)
    best[name] = min(times)
print(json.dumps(best))
""".format(t=TOKENS, e=WIDTH, v=WORDS)


def ours(options, folder, precision):
    (folder / "head.mlir").write_text(MODEL)
    (folder / "spec.toml").write_text(cases.spec(precision))
    tokens = bytearray(os.urandom(40000))
    tokens[1::2] = bytes(b % 0xC4 for b in tokens[1::2])  # little endian: below 50176
    (folder / "tokens.u16").write_bytes(tokens)

    def call(tool, *arguments):
        done = subprocess.run([str(options.bin / tool), *arguments], cwd=folder,
                              capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{tool}: {done.stderr[-800:]}")
        return done.stdout

    call("meshwork", "compile", "head.mlir", "--spec", "spec.toml", "-o", "head.mwplan")
    call("meshwork-run", "head.mwplan", "--data", "tokens.u16", "--data-type", "u16", "--steps", "3",
         "--threads", str(options.threads), "--profile-json", "profile.json")
    rows = json.loads((folder / "profile.json").read_text())["instructions"]
    milliseconds = sum(r["ms_per_step"] for r in rows
                       if r["phase"] in ("forward", "backward") and r["operation"] in ("Matmul", "Launch"))
    memory = json.loads(call("meshwork", "explain", "head.mwplan", "--json"))["memory_per_rank_bytes"]
    return milliseconds, memory["activations"] + memory["workspace"]


def theirs(options, precision):
    done = subprocess.run([options.torch_python, "-c", TORCH, precision, str(options.threads)],
                          capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr[-800:])
    return min(json.loads(done.stdout).values())


def main():
    options = cases.arguments(__doc__)
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        for precision, size in (("bf16", 2), ("f32", 4)):
            turns = [(ours(options, pathlib.Path(folder), precision), theirs(options, precision))
                     for _ in range(options.rounds)]
            mine, other = min(t[0][0] for t in turns), min(t[1] for t in turns)
            held, whole = turns[0][0][1], 2 * TOKENS * WORDS * size
            results[precision] = {"ours_ms": mine, "pair_ms": other, "ours_bytes": held, "pair_bytes": whole}
            print(f"head + cross-entropy {precision}: ours {mine:.0f} ms, the unfused pair {other:.0f} ms "
                  f"({other / mine:.2f} times); memory {held / 2**20:.0f} MiB against {whole / 2**20:.0f} "
                  f"({held / whole:.2f})", flush=True)
    if options.output:
        pathlib.Path(options.output).write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
