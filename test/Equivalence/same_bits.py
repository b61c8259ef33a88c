#!/usr/bin/env python3
"""Whether a change of the compiler or the runtime has changed a number.

    test/Equivalence/same_bits.py record before.json            # with the tools of one build
    test/Equivalence/same_bits.py record after.json             # with those of another
    test/Equivalence/same_bits.py compare before.json after.json

`record` trains tiny models under about 80 specs: on the CPU in one process, some under mpirun and
some on the emulated GPU. It keeps losses, norms and hashes of gradients and weights, and the bytes
that a rank needs. `compare` names every case in which a number differs or the memory has grown.
The tools are those in the folder MESHWORK_BIN names. Bits depend on the machine: record both
files on one.
"""
import argparse
import hashlib
import itertools
import json
import pathlib
import sys
import time

import configs
import pairs
import tools

RATE, STEPS, SEQUENCE = 1e-2, 2, 23
CORPUS = configs.corpus()
MPIRUN = ["mpirun", "--oversubscribe", "--allow-run-as-root", "-n"]

DROPPING = {"embd_pdrop": 0.1, "attn_pdrop": 0.2, "resid_pdrop": 0.1}
# Two layouts in three divide four heads; those of mistral, 3 of keys, are divided by the third.
MODELS = {**configs.ALL, "gpt2": {**configs.GPT2, "n_head": 4},
          "gpt2-dropout": {**configs.GPT2, **DROPPING, "n_head": 4}, "gpt2-3": configs.GPT2}
TENSOR = {"heads": ["tp"], "ffn": ["tp"], "vocab": ["tp"]}
SPLIT = {**TENSOR, "residual_sequence": ["tp"]}
# Mesh, rules of [shard], ZeRO stage. tp=3 and dp=3 divide nothing.
LAYOUTS = {
    "one": (["dp=1"], {}, 0),
    "dp2": (["dp=2"], {}, 0),
    "zero1": (["dp=2"], {}, 1),
    "zero2": (["dp=2"], {}, 2),
    "zero3": (["dp=3"], {}, 3),
    "tp2": (["tp=2"], TENSOR, 0),
    "tp3-sp": (["tp=3"], SPLIT, 0),
    "zero1-tp2": (["dp=2", "tp=2"], SPLIT, 1),
    "zero3-tp2": (["dp=2", "tp=2"], SPLIT, 3),
}
MICROBATCHES = (1, 3)
PRECISIONS = {"f32": {"compute": "f32"}, "bf16": {"compute": "bf16"},
              "bf16-stochastic": {"compute": "bf16", "rounding": "stochastic"}}
RECOMPUTE = ("none", "selective", "full")
OVERLAP = ("always", "never")
DOCUMENTS = ("joined", "separate")


class Case:
    layouts = LAYOUTS

    def __init__(self, model, layout, microbatches, precision, recompute, overlap, documents, target):
        self.model, self.layout, self.target, self.documents = model, layout, target, documents
        self.axes, rules, stage = self.layouts[layout]
        self.ranks, self.data = 1, 1
        for name, size in (axis.split("=") for axis in self.axes):
            self.ranks *= int(size)
            self.data *= int(size) if name == "dp" else 1
        self.sections = {
            "mesh": {"axes": self.axes}, "shard": {**({"batch": ["dp"]} if "dp" in self.axes[0] else {}), **rules},
            "zero": {"stage": stage}, "precision": PRECISIONS[precision],
            "recompute": {"policy": recompute}, "overlap": {"collectives": overlap},
            **({"target": {"device": "cuda", "arch": "sm_80"}} if target == "gpu" else {})}
        self.micro = 1 if self.data == 3 else 2
        self.batch = self.micro * self.data * microbatches
        self.name = "/".join(map(str, (model, layout, microbatches, precision, recompute, overlap, documents, target)))

    def text(self):
        return tools.spec(self.batch, self.micro, SEQUENCE, documents=self.documents, **self.sections)

    def plan(self, space):
        return space.compile(MODELS[self.model], self.text())

    def run(self, space, plan):
        options = ["--document-begin", 7] if self.documents != "joined" else []
        if self.target == "gpu" and self.ranks > 1:
            options.append("--share-gpu")
        launcher = [*MPIRUN, str(self.ranks)] if self.target == "mpi" else []
        return space.train(plan, CORPUS, STEPS, "--threads", 1, *options, lr=RATE, launcher=launcher)

    def record(self, space):
        begin = time.monotonic()
        plan = self.plan(space)
        compiled = time.monotonic() - begin
        run = self.run(space, plan)
        memory = space.explain(plan)["memory_per_rank_bytes"]
        return {"loss": run.losses, "grad_norm": [line["grad_norm"] for line in run.metrics],
                "weights": digest(run.weights_path), "gradients": digest(run.gradients_path),
                "peak_bytes": memory["peak"], "plan_bytes": pathlib.Path(plan).stat().st_size,
                "compile_s": compiled}


def digest(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


def is_legal(case):
    """Whether tp divides the heads."""
    model, layout = MODELS[case[0]], LAYOUTS[case[1]]
    heads = model.get("num_key_value_heads", model.get("n_head"))
    return not layout[1] or heads % int(layout[0][-1].split("=")[1]) == 0


def cases():
    """Each pair of values that may meet is in a case; of GPUs and of MPI those that matter there."""
    everywhere = itertools.product(MODELS, LAYOUTS, MICROBATCHES, PRECISIONS, RECOMPUTE, OVERLAP, DOCUMENTS, ("cpu",))
    parallel = [name for name, layout in LAYOUTS.items() if layout[0] != ["dp=1"]]
    mpi = itertools.product(("gpt2-dropout", "llama"), parallel, MICROBATCHES, ("f32",), ("selective",), OVERLAP,
                            ("joined",), ("mpi",))
    gpu = itertools.product(("gpt2-dropout", "qwen2"), ("one", "dp2", "zero1", "zero3-tp2"), MICROBATCHES,
                            ("f32", "bf16"), ("selective",), OVERLAP, ("joined",), ("gpu",))
    return [Case(*case) for kind in (everywhere, mpi, gpu) for case in pairs.choose(filter(is_legal, kind))]


def record(path, pattern):
    emulator = tools.BIN.parent / "emulator"
    found = {}
    with tools.Workspace(LD_LIBRARY_PATH=str(emulator)) as space:
        for case in cases():
            if pattern and pattern not in case.name:
                continue
            try:
                found[case.name] = case.record(space)
            except AssertionError as refused:
                found[case.name] = {"refused": str(refused).splitlines()[-1]}
                print(f"{case.name}: {found[case.name]['refused']}", flush=True)
    pathlib.Path(path).write_text(json.dumps(found, indent=1) + "\n")
    print(f"{len(found)} cases in {path}")


def compare(before, after):
    before, after = (json.loads(pathlib.Path(path).read_text()) for path in (before, after))
    different = 0
    for name in before:
        if name not in after:
            continue
        old, new = before[name], after[name]
        wrong = [key for key in ("refused", "loss", "grad_norm", "weights", "gradients")
                 if old.get(key) != new.get(key)]
        if new.get("peak_bytes", 0) > old.get("peak_bytes", 0):
            wrong.append(f"peak_bytes {old['peak_bytes']} -> {new['peak_bytes']}")
        if wrong:
            different += 1
            print(f"{name}: {', '.join(wrong)}")
    both = [name for name in before if name in after and "compile_s" in before[name] and "compile_s" in after[name]]
    seconds = [sum(found[name]["compile_s"] for name in both) for found in (before, after)]
    sizes = [sum(found[name]["plan_bytes"] for name in both) for found in (before, after)]
    print(f"{len(both)} cases in both, {different} differ; compiled in {seconds[0]:.1f} s and {seconds[1]:.1f} s, "
          f"plans of {sizes[0]} and {sizes[1]} bytes")
    return different != 0 or not both


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record")
    recording.add_argument("out")
    recording.add_argument("--only", default="", help="part of the names of the cases to run")
    comparing = commands.add_parser("compare")
    comparing.add_argument("before")
    comparing.add_argument("after")
    options = parser.parse_args()
    if options.command == "record":
        return record(options.out, options.only)
    return compare(options.before, options.after)


if __name__ == "__main__":
    sys.exit(main())
