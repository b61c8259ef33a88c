#!/usr/bin/env python3
"""What checkpoints cost a run:

    test/Benchmarks/save.py [--layers 4] [--sequence 512] [--rounds 3] [--folder DIR]

Trains GPT-2 of a few layers (AdamW, f32: 12 bytes a parameter) in turns: without checkpoints,
and with one every few steps. A step is one of three kinds:

    copying   the first after a save has begun: states are copied out before or under it
    between   any other: files may still be written beside it
    quiet     of the run without checkpoints

Prints, as the median of the rounds and with the worst, each round paired with the quiet run and
the copy measured next to it:

    stall     how much longer a copying step takes than a quiet one, in copies of the state by
              one thread (goal 1.2)
    waited    the part of it for which the update waits for a copy under the step, in the same unit
    between   mean time of a step between saves, over that of a quiet one (goal 1.05, asked
              where a step takes at least a second per GB of state). Writing costs processor
              time, about as much as it costs the disk's driver: the fewer steps between two
              saves, and the fewer cores are left free, the more of it is seen
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("MESHWORK_BIN", ROOT / "build-release" / "bin")).resolve()
STALL, BETWEEN, SECONDS_PER_GB = 1.2, 1.05, 1.0
SAVES = 2  # that a run begins under a step


def call(*command):
    done = subprocess.run([str(BIN / command[0]), *map(str, command[1:])], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{command}: {done.stderr}")
    return done.stdout


def copy_seconds(count, tries=3):
    """Best time of one copy of `count` bytes, memory touched before."""
    source = b"\1" * count
    target = bytearray(source)
    view = memoryview(target)
    times = []
    for _ in range(tries):
        begin = time.perf_counter()
        view[:] = source
        times.append(time.perf_counter() - begin)
    return min(times)


class Bench:
    def __init__(self, options, space):
        self.options, self.space, self.plan = options, space, space / "model.mwplan"
        config = json.loads((ROOT / "examples/gpt2-124m.json").read_text())
        (space / "model.json").write_text(json.dumps({**config, "n_layer": options.layers}))
        call("meshwork", "compile", space / "model.json", "--spec", ROOT / "examples/dp1.toml", "--set",
             f'mesh.axes=["dp={options.ranks}"]', "--set", f"batch.global={options.ranks}", "--set", "batch.micro=1",
             "--set", f"batch.sequence={options.sequence}", "--set", 'precision.compute="f32"', "--set",
             "zero.stage=1", "-o", self.plan)
        (space / "text").write_bytes((ROOT / "LICENSE").read_bytes() * 20)
        self.bytes = 0

    def run(self, *more):
        """Metrics of all steps; sets `bytes` where checkpoints are kept."""
        metrics, kept = self.space / "metrics.jsonl", self.space / "kept"
        metrics.unlink(missing_ok=True)  # a log grows
        shutil.rmtree(kept, ignore_errors=True)
        every = self.options.every
        told = call("meshwork-run", self.plan, "--data", self.space / "text", "--tokenizer", "bytes", "--steps",
                    (SAVES + 1) * every, "--metrics", metrics, *more)
        if "late after" in told:
            raise RuntimeError(f"a save takes longer than {every} steps: give a larger --every\n{told}")
        self.bytes = sum(path.stat().st_size for path in max(kept.iterdir()).iterdir()) if kept.exists() else self.bytes
        return [json.loads(line) for line in metrics.read_text().splitlines()]

    def round(self):
        """(copying over quiet in copies, waited in copies, between over quiet, seconds of a quiet step)."""
        quiet = statistics.mean(step["step_ms"] for step in self.run()[1:]) / 1e3
        every = self.options.every
        steps = self.run("--checkpoint", self.space / "kept", "--checkpoint-every", every, "--keep", 2)[every:]
        copying, between = steps[::every], [step for i, step in enumerate(steps) if i % every]
        copy = copy_seconds(self.bytes)
        own = statistics.median(step["step_ms"] for step in copying) / 1e3
        # On one rank nobody else is waited for.
        waited = statistics.median(step["idle_ms"] for step in copying) / 1e3
        # A mean: those under which files are written are few, and slower.
        beside = statistics.mean(step["step_ms"] for step in between) / 1e3
        return (own - quiet) / copy, waited / copy, beside / quiet, quiet


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in (("layers", 2), ("sequence", 512), ("ranks", 1), ("rounds", 3), ("every", 8)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--folder", help="on the disk that is written to")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        bench = Bench(options, pathlib.Path(name))
        rounds = [bench.round() for _ in range(options.rounds)]
    stall, waited, between, quiet = zip(*rounds)
    per_gb = statistics.median(quiet) / (bench.bytes / 1e9)
    print(f"{bench.bytes / 1e9:.2f} GB of state, a step {statistics.median(quiet):.2f} s: {per_gb:.2f} s per GB"
          + ("" if per_gb >= SECONDS_PER_GB else f" (below {SECONDS_PER_GB:.0f}: nothing is asked of `between`)"))
    for label, found, goal in (("stall, in copies of the state", stall, f" (goal {STALL})"),
                               ("waited, in copies of the state", waited, ""),
                               ("step between saves over a quiet one", between, f" (goal {BETWEEN})")):
        print(f"{label}: {statistics.median(found):.3f}, worst {max(found):.3f} of {len(found)}{goal}")


if __name__ == "__main__":
    main()
