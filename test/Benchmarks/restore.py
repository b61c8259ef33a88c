#!/usr/bin/env python3
"""How fast states come back from a checkpoint, against what the disk gives:

    test/Benchmarks/restore.py [--ranks 1 2] [--folder DIR]

Saves about 2 GB of states (GPT-2 with 18 layers, AdamW, f32), then takes turns: files read
one after the other, 4 MiB at a time, and a run that resumes and takes no step. The page
cache lets go of the files before each. The goal is 70 % of the disk's rate, hashing and
placing included.
"""
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("MESHWORK_BIN", ROOT / "build-release" / "bin")).resolve()
GOAL = 0.7
UNITS = {"MiB": 1 << 20, "GiB": 1 << 30}


def call(*command):
    done = subprocess.run([str(BIN / command[0]), *map(str, command[1:])], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{command}: {done.stderr}")
    return done.stdout


def forget(folder):
    """The files' pages leave the cache."""
    for path in folder.iterdir():
        with open(path, "rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def read_all(folder):
    """Bytes a second."""
    buffer = bytearray(4 << 20)
    count, begin = 0, time.perf_counter()
    for path in sorted(folder.iterdir()):
        with open(path, "rb", buffering=0) as file:
            while got := file.readinto(buffer):
                count += got
    return count / (time.perf_counter() - begin)


def restore(plan, kept):
    out = call("meshwork-run", plan, "--steps", 0, "--resume", kept)
    count, unit, seconds = re.search(r"resumed from .*; ([\d.]+) (\wiB) in ([\d.]+) s", out).groups()
    return float(count) * UNITS[unit] / float(seconds)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--folder", help="on the disk that is measured")
    parser.add_argument("--tries", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        space = pathlib.Path(name)
        config = json.loads((ROOT / "examples/gpt2-124m.json").read_text())
        (space / "model.json").write_text(json.dumps({**config, "n_layer": 18}))
        for ranks in options.ranks:
            plan, kept = space / f"{ranks}.mwplan", space / f"kept{ranks}"
            call("meshwork", "compile", space / "model.json", "--spec", ROOT / "examples/dp1.toml", "--set",
                 f'mesh.axes=["dp={ranks}"]', "--set", f"batch.global={ranks}", "--set", "batch.micro=1", "--set",
                 "batch.sequence=64", "--set", 'precision.compute="f32"', "--set", "zero.stage=3", "-o", plan)
            call("meshwork-run", plan, "--steps", 0, "--checkpoint", kept)
            folder = kept / "step-0000000000"
            rates = {"disk": [], "restore": []}
            for _ in range(options.tries):
                for key, measured in (("disk", lambda: read_all(folder)), ("restore", lambda: restore(plan, kept))):
                    forget(folder)
                    rates[key].append(measured() / 1e9)
            disk, ours = (statistics.median(rates[key]) for key in ("disk", "restore"))
            print(f"{ranks} rank{'s' * (ranks > 1)}: disk {disk:.2f} GB/s, restore {ours:.2f} GB/s: "
                  f"{ours / disk:.0%} (goal {GOAL:.0%})", flush=True)


if __name__ == "__main__":
    main()
