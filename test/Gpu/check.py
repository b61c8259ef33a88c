"""Confirms a build on one NVIDIA GPU, in under ten minutes:

    python3 check.py [--out FOLDER] [STAGE...]     all of: kernels ranks sanitizer speed

kernels    every instruction of real shapes against the CPU, from the same inputs
ranks      tiny models on 1, 2 and 4 ranks of the GPU against the CPU: loss, gradients, weights
sanitizer  memcheck and racecheck of a training step, where compute-sanitizer is installed
speed      whole steps against PyTorch, where it is installed; bandwidth and gaps

Prints a table and writes gpu-check.json. Exit code 1 when anything is wrong; being slow is
not, and neither is a stage that was left out, which the table says.
"""
import argparse
import array
import json
import math
import os
import pathlib
import shutil
import statistics
import struct
import subprocess
import sys
import time

import cases

HERE = pathlib.Path(__file__).resolve().parent


def cuda_folders():
    """Where CUDA's toolkit and Python packages keep cuBLASLt and NCCL; the loader may not know."""
    patterns = [(pathlib.Path("/usr/local"), "cuda*/lib64"), (pathlib.Path("/usr/local"), "cuda*/targets/*/lib")]
    patterns += [(pathlib.Path(path), "nvidia/*/lib") for path in site_packages()]
    return [str(folder) for root, pattern in patterns if root.is_dir() for folder in sorted(root.glob(pattern))]


def site_packages():
    found = subprocess.run(["python3", "-c", "import sys; print(*sys.path, sep='\\n')"], capture_output=True, text=True)
    return [x for x in found.stdout.splitlines() if x.endswith(("site-packages", "dist-packages"))]


# The caller's own folders come first: an emulator's, in tests.
ENVIRONMENT = {**os.environ, "LD_LIBRARY_PATH": os.pathsep.join(
    filter(None, [os.environ.get("LD_LIBRARY_PATH"), str(HERE / "lib"), *cuda_folders()]))}
RUN = [str(HERE / "meshwork-run")]
DATA = ["--data", str(HERE / "tokens.u16"), "--data-type", "u16"]


def call(command, limit_s=240, environment=ENVIRONMENT):
    try:
        return subprocess.run([*map(str, command)], capture_output=True, text=True, errors="replace",
                              env=environment, timeout=limit_s, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 124, "", f"did not end in {limit_s} s")
    except OSError as error:
        return subprocess.CompletedProcess(command, 127, "", str(error))


def plan(name):
    return HERE / "plans" / f"{name}.mwplan"


def tensors(path):
    """Name -> floats of an f32 safetensors file; no package needed."""
    data = pathlib.Path(path).read_bytes()
    length, = struct.unpack_from("<Q", data)
    header = json.loads(data[8:8 + length])
    found = {}
    for name, info in header.items():
        if name != "__metadata__":
            begin, end = (8 + length + x for x in info["data_offsets"])
            found[name] = array.array("f", data[begin:end])
    return found


def distance(a, b):
    """Of b from a, relative to a's size, over all tensors: the worst."""
    worst, where = 0.0, ""
    for name, expected in a.items():
        got = b.get(name)
        if got is None or len(got) != len(expected):
            return math.inf, name
        size = math.sqrt(math.fsum(x * x for x in expected)) or 1e-30
        off = math.sqrt(math.fsum((x - y) ** 2 for x, y in zip(expected, got))) / size
        if not off <= worst:
            worst, where = off, name
    return worst, where


class Report:
    def __init__(self):
        self.rows, self.failed = [], False

    def add(self, what, good, text, **numbers):
        """good: True, False, or None for what is told and not judged."""
        self.failed |= good is False
        self.rows.append({"what": what, "good": good, "text": text, **numbers})
        mark = {True: "ok  ", False: "FAIL", None: "    "}[good]
        print(f"{mark} {what}: {text}", flush=True)


def kernels(report, out):
    for name in cases.COMPARED:
        for compute in ("f32", "bf16"):
            done = call([*RUN, plan(f"compare-{name}-{compute}"), *DATA, "--steps", 1, "--compare-cpu"])
            lines = [x for x in done.stdout.splitlines() if "of what rounding allows" in x]
            report.add(f"kernels {name} {compute}", done.returncode == 0 and bool(lines),
                       done.stderr.strip()[-600:] or "every instruction as on the CPU", lines=lines)


def train(name, out, *options, steps=1):
    """Losses, gradients and weights of a tiny model."""
    files = {k: out / f"{name}-{k}" for k in ("metrics", "weights", "gradients")}
    done = call([*RUN, plan(name), *DATA, "--steps", steps, "--lr", "1e-2", "--metrics", files["metrics"],
                 "--save", files["weights"], "--save-gradients", files["gradients"], *options])
    if done.returncode != 0:
        raise RuntimeError(f"exit {done.returncode}: {done.stderr.strip()[-600:]}")
    losses = [json.loads(line)["loss"] for line in files["metrics"].read_text().splitlines()]
    return losses, tensors(files["gradients"]), tensors(files["weights"])


def ranks(report, out):
    """f32: sums in another order and approximate functions, 2^-22 each; 1e-4 leaves room
    for what a backward pass adds up. AdamW's first step divides by the gradient's size, so
    weights may differ by the learning rate where a gradient is next to nothing."""
    for family in cases.TINY:
        loss, gradients, weights = train(f"{family}-one-cpu", out)
        for layout in cases.LAYOUTS:
            what = f"ranks {family} {layout}"
            try:
                got = train(f"{family}-{layout}-cuda", out, "--share-gpu")
            except RuntimeError as error:
                report.add(what, False, str(error))
                continue
            off, where = distance(gradients, got[1])
            moved, _ = distance(weights, got[2])
            far = abs(got[0][0] / loss[0] - 1)
            report.add(what, far < 1e-5 and off < 1e-4 and moved < 1e-2,
                       f"loss off by {far:.1e}, gradients {off:.1e} ({where}), weights {moved:.1e}",
                       loss=got[0][0], cpu_loss=loss[0])


def sanitizer(report, out):
    tool = shutil.which("compute-sanitizer") or shutil.which(
        "compute-sanitizer", path="/usr/local/cuda/bin:/usr/local/cuda/compute-sanitizer")
    if not tool:
        return report.add("sanitizer", None, "compute-sanitizer is not installed: left out")
    for check in ("memcheck", "racecheck"):
        for name in ("gpt2-one-cuda", "llama-dp2-tp2-zero3-cuda"):
            done = call([tool, "--tool", check, "--error-exitcode", 9, *RUN, plan(name), *DATA, "--steps", 1,
                         "--share-gpu"])
            summary = [x for x in done.stdout.splitlines() if "SUMMARY" in x]
            report.add(f"{check} {name}", done.returncode == 0, "; ".join(summary) or done.stderr[-300:])


def timed(name, out, *options, steps=12):
    metrics = out / f"{name}.jsonl"
    done = call([*RUN, plan(f"timed-{name}"), *DATA, "--steps", steps, "--metrics", metrics, *options])
    if done.returncode != 0:
        raise RuntimeError(f"exit {done.returncode}: {done.stderr.strip()[-600:]}")
    lines = [json.loads(line) for line in metrics.read_text().splitlines()]
    return lines[2:]  # after graphs are made and clocks are up


def torch_side(name, out):
    """PyTorch's best step and what this GPU can do, or why not."""
    done = call(["python3", HERE / "torch_step.py", HERE / "configs" / f"{name}.json",
                 cases.TIMED[name]["batch"]], limit_s=200, environment=dict(os.environ))
    if done.returncode != 0:
        return None, done.stderr.strip().splitlines()[-1:] or ["no output"]
    return json.loads(done.stdout.splitlines()[-1]), None


def slow_ones(profile, copy_gbytes):
    """Instructions that move bytes alone, below 85 % of a copy's rate."""
    rows = []
    for row in profile:
        if row["operation"] in ("Launch", "Embedding", "CopyBlock", "Fill") and row["ms_per_step"] > 0.02:
            rows.append((row["gbytes_per_s"] / copy_gbytes, row["ms_per_step"], row["name"]))
    return sorted(rows)


def speed(report, out):
    for name in cases.TIMED:
        try:
            lines = timed(name, out, "--tune-matmuls", "--measure-peak")
            profile = out / f"{name}-profile.json"
            timed(name, out, "--tune-matmuls", "--profile-json", profile, steps=5)
        except RuntimeError as error:
            report.add(f"speed {name}", False, str(error))
            continue
        step = statistics.median(x["step_ms"] for x in lines)
        mfu = statistics.median(x["mfu"] or 0 for x in lines)
        busy = json.loads(profile.read_text())["instructions"]
        total = sum(x["ms_per_step"] for x in busy)
        numbers = {"step_ms": step, "mfu": mfu, "instructions_ms": total, "gap": 1 - total / step}
        theirs, why = torch_side(name, out)
        text = f"{step:.2f} ms a step, mfu {mfu:.3f}, instructions {total:.2f} ms"
        if theirs:
            numbers.update(torch=theirs, ratio=theirs["step_ms"] / step,
                           slow=slow_ones(busy, theirs["copy_gbytes"])[:12])
            text += f"; PyTorch {theirs['step_ms']:.2f} ms: {theirs['step_ms'] / step:.2f} times as fast"
        else:
            text += f"; PyTorch left out: {why}"
        report.add(f"speed {name}", None, text, **numbers)


STAGES = {"kernels": kernels, "ranks": ranks, "sanitizer": sanitizer, "speed": speed}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stages", nargs="*", metavar="STAGE")
    parser.add_argument("--out", type=pathlib.Path, default=HERE / "out")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    report, start = Report(), time.time()
    name = call(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"])
    device = name.stdout.strip() if name.returncode == 0 else "unknown"
    print(f"GPU: {device}", flush=True)
    for stage in options.stages or STAGES:
        STAGES[stage](report, options.out)
    result = {"gpu": device, "date": time.strftime("%Y-%m-%d"), "seconds": round(time.time() - start),
              "rows": report.rows}
    (options.out / "gpu-check.json").write_text(json.dumps(result, indent=1))
    print(f"{sum(r['good'] is True for r in report.rows)} ok, "
          f"{sum(r['good'] is False for r in report.rows)} failed, {result['seconds']} s")
    sys.exit(report.failed)


if __name__ == "__main__":
    main()
