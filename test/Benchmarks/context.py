#!/usr/bin/env python3
"""Steps of long sequences that two ranks share, by method and layout, in turns.

    test/Benchmarks/context.py [--sequence 16384] [--hidden 256] [--layers 2] [--compute f32] [--turns 3]

Two sequences a step and a thread a rank. The goals: a ring in zigzag at least 1.25 times as fast as one in
blocks, whose second rank has three quarters of the work; and at most 1.1 times the step of two ranks with a
sequence each, who send nothing but gradients.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import cases

ROOT = pathlib.Path(__file__).resolve().parents[2]
RING = '[shard]\nsequence = ["cp"]\n[context]\nmethod = "{}"\nlayout = "{}"\n'
CASES = {"dp": ("dp=2", ""), **{f"{method} {layout}": ("cp=2", RING.format(method, layout)) for method, layout in (
    ("ring", "zigzag"), ("ring", "block"), ("gathered", "zigzag"), ("ulysses", "block"))}}


class Bench:
    def __init__(self, options, folder):
        self.options, self.folder = options, pathlib.Path(folder)
        (self.folder / "text").write_bytes((ROOT / "LICENSE").read_bytes() * 20)
        config = json.loads((ROOT / "examples" / "llama-tiny.json").read_text())
        heads = max(options.hidden // 64, 2)
        config.update(hidden_size=options.hidden, intermediate_size=options.hidden * 4, num_attention_heads=heads,
                      num_key_value_heads=heads // 2, num_hidden_layers=options.layers,
                      max_position_embeddings=options.sequence)
        (self.folder / "config.json").write_text(json.dumps(config))

    def run(self, tool, *arguments, launcher=()):
        command = [str(a) for a in (*launcher, self.options.bin / tool, *arguments)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr[-800:]}")
        return done.stdout

    def compile(self, name, axes, sections):
        spec, plan = (self.folder / (name.replace(" ", "-") + end) for end in (".toml", ".mwplan"))
        spec.write_text(f'[mesh]\naxes = ["{axes}"]\n[batch]\nglobal = 2\nmicro = 1\nsequence = '
                        f'{self.options.sequence}\n[precision]\ncompute = "{self.options.compute}"\n{sections}')
        self.run("meshwork", "compile", self.folder / "config.json", "--spec", spec, "-o", plan)
        return plan

    def step(self, plan):
        """The best of a run, in seconds."""
        metrics = self.folder / "metrics.jsonl"
        metrics.unlink(missing_ok=True)
        launcher = ("mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2") if self.options.mpi else ()
        self.run("meshwork-run", plan, "--data", self.folder / "text", "--tokenizer", "bytes", "--steps",
                 self.options.steps, "--threads", 1, "--metrics", metrics, launcher=launcher)
        return min(json.loads(line)["step_ms"] for line in metrics.read_text().splitlines()) / 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in (("sequence", 16384), ("hidden", 256), ("layers", 2), ("steps", 1), ("turns", 3)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--compute", default="f32", choices=["f32", "bf16"])
    parser.add_argument("--mpi", action="store_true", help="a process a rank")
    cases.add_bin(parser)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="meshwork-") as folder:
        bench = Bench(options, folder)
        plans = {name: bench.compile(name, *case) for name, case in CASES.items()}
        best = {}
        for turn in range(options.turns):
            for name, plan in plans.items():
                seconds = bench.step(plan)
                best[name] = min(seconds, best.get(name, seconds))
                print(f"turn {turn}: {name:16} {seconds:7.2f} s", flush=True)
        zigzag = best["ring zigzag"]
        print(f"best: ring in blocks / in zigzag {best['ring block'] / zigzag:.2f} (goal 1.25); "
              f"in zigzag / a sequence each {zigzag / best['dp']:.2f} (goal 1.1); "
              f"gathered {best['gathered zigzag'] / zigzag:.2f}, ulysses {best['ulysses block'] / zigzag:.2f} of the ring")


if __name__ == "__main__":
    sys.exit(main())
