"""Confirms a build on one NVIDIA GPU, in under ten minutes:

    python3 check.py [--out FOLDER] [--seconds N] [STAGE...]     all of: kernels ranks sanitizer speed

kernels    every instruction of real shapes against the CPU, from the same inputs
ranks      tiny models on 1, 2 and 4 ranks of the GPU against the CPU: loss, gradients, weights
sanitizer  memcheck and racecheck of a training step, where compute-sanitizer is installed
speed      whole steps against PyTorch, where it is installed; bandwidth and gaps

Prints a table and writes gpu-check.json, row by row: what ends early leaves what it has
found. Every stage has its share of the time, and one that breaks does not end the others.
Exit code 1 when anything is wrong; being slow is not, and neither is what was not run, which
the table says.
"""
import argparse
import array
import functools
import json
import math
import os
import pathlib
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import time

import cases

HERE = pathlib.Path(__file__).resolve().parent


def output_of(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""


# The one that runs this may not be the one that has PyTorch.
PYTHONS = list(dict.fromkeys(filter(None, (sys.executable, shutil.which("python3"), shutil.which("python")))))
ASK = "import sys; print(*sys.path, sys.prefix + '/site-packages', sep='\\n')"
PACKAGES = list(dict.fromkeys(line for python in PYTHONS for line in output_of(python, "-c", ASK).splitlines()
                              if line.endswith(("site-packages", "dist-packages"))))


def found(patterns):
    """Existing paths, in the order of (root, pattern)."""
    return [str(path) for root, pattern in patterns if os.path.isdir(root)
            for path in sorted(pathlib.Path(root).glob(pattern))]


def cuda_folders():
    """Where containers keep the driver, CUDA's toolkit and Python packages cuBLASLt, cuDNN and NCCL:
    the loader may not know."""
    folders = found([("/usr/local/nvidia", "lib64"), ("/usr/lib/wsl", "lib"), ("/usr/local", "cuda*/lib64"),
                     ("/usr/local", "cuda*/targets/*/lib"), *((path, "nvidia/*/lib") for path in PACKAGES)])
    conda = os.path.join(os.environ.get("CONDA_PREFIX", sys.prefix), "lib")
    return folders + ([conda] if found([(conda, "libcublasLt.so*")]) else [])


# The caller's own folders come first: an emulator's, in tests.
ENVIRONMENT = {**os.environ, "LD_LIBRARY_PATH": os.pathsep.join(
    filter(None, [os.environ.get("LD_LIBRARY_PATH"), str(HERE / "lib"), *cuda_folders()]))}
RUN = [str(HERE / "meshwork-run")]
UNAVAILABLE = 69  # exit code: this machine lacks something
DATA = ["--data", str(HERE / "tokens.u16"), "--data-type", "u16"]


class NoTime(Exception):
    pass


class Clock:
    """When what runs now must have ended."""
    deadline = math.inf

    @classmethod
    def left(cls):
        return cls.deadline - time.monotonic()


def call(command, limit_s=240, environment=ENVIRONMENT):
    """With all that it starts: 124 when that did not end in time."""
    limit_s = min(limit_s, Clock.left())
    if limit_s < 1:
        raise NoTime
    try:
        started = subprocess.Popen([*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   errors="replace", env=environment, stdin=subprocess.DEVNULL, start_new_session=True)
    except OSError as error:
        return subprocess.CompletedProcess(command, 127, "", str(error))
    try:
        out, err = started.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        os.killpg(started.pid, signal.SIGKILL)
        out, err = started.communicate()
        return subprocess.CompletedProcess(command, 124, out, f"did not end in {limit_s:.0f} s: {err[-300:]}")
    return subprocess.CompletedProcess(command, started.returncode, out, err)


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
    def __init__(self, path, about):
        self.path, self.about, self.start = path, about, time.monotonic()
        self.rows, self.failed = [], False

    def seconds(self):
        return round(time.monotonic() - self.start)

    def add(self, what, good, text, **numbers):
        """good: True, False, or None for what is told and not judged."""
        self.failed |= good is False
        self.rows.append({"what": what, "good": good, "text": text, **numbers})
        mark = {True: "ok  ", False: "FAIL", None: "    "}[good]
        print(f"{mark} {what}: {text}", flush=True)
        self.path.write_text(json.dumps({**self.about, "seconds": self.seconds(), "rows": self.rows}, indent=1))


def kernels(report, out):
    for name, case in cases.COMPARED.items():
        for precision in case.get("precisions", cases.PRECISIONS):
            for option in cases.COMPARED_WITH[precision]:
                compare(report, name, precision, option)


def compare(report, name, precision, option):
    options = [*cases.COMPARED[name].get("options", []), *option]
    done = call([*RUN, plan(f"compare-{name}-{precision}"), *DATA, "--steps", 1, "--compare-cpu", *options])
    lines = [x for x in done.stdout.splitlines() if "of what rounding allows" in x or "cuDNN" in x]
    good = done.returncode == 0 and bool(lines)
    if option and done.returncode == UNAVAILABLE:
        good = None  # no cuDNN: the plan's kernels are what runs there
    report.add(" ".join(["kernels", name, precision, *option]), good,
               done.stderr.strip()[-600:] or "every instruction as on the CPU", lines=lines)


def train(name, out, *options, steps=1):
    """Losses, gradients and weights of a tiny model."""
    files = {k: out / f"{name}-{k}" for k in ("metrics", "weights", "gradients")}
    files["metrics"].unlink(missing_ok=True)  # a log grows
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
        try:
            loss, gradients, weights = train(f"{family}-one-cpu", out)
        except RuntimeError as error:
            report.add(f"ranks {family}", False, f"on the CPU: {error}")
            continue
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


def sanitizer_tool():
    patterns = [("/usr/local", "cuda*/bin"), ("/usr/local", "cuda*/compute-sanitizer")]
    patterns += [(path, f"nvidia/*/{folder}") for path in PACKAGES for folder in ("bin", "compute-sanitizer")]
    places = found(patterns)
    return shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path=os.pathsep.join(places))


def sanitizer(report, out):
    tool = sanitizer_tool()
    if not tool:
        return report.add("sanitizer", None, "not run: no compute-sanitizer")
    for check in ("memcheck", "racecheck"):
        for name in ("gpt2-one-cuda", "llama-dp2-tp2-zero3-cuda"):
            done = call([tool, "--tool", check, "--error-exitcode", 9, *RUN, plan(name), *DATA, "--steps", 1,
                         "--share-gpu"])
            lines = (done.stdout + done.stderr).splitlines()
            summary = [x.strip("= ") for x in lines if "SUMMARY" in x]
            refused = [x.strip("= ") for x in lines if "not supported" in x or "Internal Sanitizer Error" in x]
            if refused and not summary:
                report.add(f"{check} {name}", None, f"not run: {refused[0]}")
            else:
                report.add(f"{check} {name}", done.returncode == 0, "; ".join(summary) or done.stderr[-300:])


def timed(name, out, *options, steps=12):
    metrics = out / f"{name}.jsonl"
    metrics.unlink(missing_ok=True)  # a log grows
    done = call([*RUN, plan(f"timed-{name}"), *DATA, "--steps", steps, "--metrics", metrics, *options])
    if done.returncode != 0:
        raise RuntimeError(f"exit {done.returncode}: {done.stderr.strip()[-600:]}")
    lines = [json.loads(line) for line in metrics.read_text().splitlines()]
    return lines[2:]  # after graphs are made and clocks are up


def torch_python():
    for python in PYTHONS:
        sees = call([python, "-c", "import torch; assert torch.cuda.is_available()"], environment=dict(os.environ))
        if sees.returncode == 0:
            return python
    return None


@functools.cache  # Cases that differ in our precision have one rival.
def torch_side(python, name):
    """PyTorch's best step and what this GPU can do, or why not."""
    if not python:
        return None, "no PyTorch that sees the GPU"
    try:
        done = call([python, HERE / "torch_step.py", HERE / "configs" / f"{name}.json",
                     cases.TIMED[name]["batch"]], limit_s=150, environment=dict(os.environ))
    except NoTime:
        return None, "no time is left"
    if done.returncode != 0:
        return None, (done.stderr.strip().splitlines() or ["no output"])[-1]
    return json.loads(done.stdout.splitlines()[-1]), None


def slow_ones(profile, copy_gbytes):
    """Instructions that move bytes alone, below 85 % of a copy's rate."""
    rows = []
    for row in profile:
        if row["operation"] in ("Launch", "Embedding", "CopyBlock", "Fill") and row["ms_per_step"] > 0.02:
            rows.append((row["gbytes_per_s"] / copy_gbytes, row["ms_per_step"], row["name"]))
    return sorted(rows)


def with_cudnn(name, out):
    """Milliseconds of a step whose attention cuDNN runs, or why there are none."""
    try:
        lines = timed(name, out, "--tune-matmuls", "--cudnn-attention")
    except RuntimeError as error:
        return None, str(error)
    return statistics.median(x["step_ms"] for x in lines), None


def speed(report, out):
    python = torch_python()
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
        theirs, why = torch_side(python, cases.TIMED[name].get("against", name))
        text = f"{step:.2f} ms a step, mfu {mfu:.3f}, instructions {total:.2f} ms"
        if theirs:
            numbers.update(torch=theirs, ratio=theirs["step_ms"] / step,
                           slow=slow_ones(busy, theirs["copy_gbytes"])[:12])
            text += f"; PyTorch {theirs['step_ms']:.2f} ms: {theirs['step_ms'] / step:.2f} times as fast"
        else:
            text += f"; PyTorch not run: {why}"
        numbers["cudnn_step_ms"], why = with_cudnn(name, out)
        text += f"; attention by cuDNN: {why}" if why else f"; {numbers['cudnn_step_ms']:.2f} ms with attention by cuDNN"
        report.add(f"speed {name}", None, text, **numbers)


STAGES = {"kernels": kernels, "ranks": ranks, "sanitizer": sanitizer, "speed": speed}
# Of the time, in parts of all; what a stage leaves goes to those after it.
SHARES = {"kernels": 4, "ranks": 3, "sanitizer": 3, "speed": 10}


def launcher_starts(report):
    """It needs a C library, and a C++ one, no older than bundle.py says."""
    done = call([*RUN, "--help"], limit_s=60)
    good = done.returncode == 0
    report.add("launcher", good, "starts" if good else done.stderr.strip()[-600:] or f"exit {done.returncode}")
    return good


def run_stage(stage, report, out):
    try:
        STAGES[stage](report, out)
    except NoTime:
        report.add(stage, None, "what is missing was not run: no time is left")
    except Exception as error:  # the other stages have results of their own
        report.add(stage, False, f"{type(error).__name__}: {error}")


def about_machine():
    name = output_of("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader").strip()
    libraries = found([(x, y) for x in cuda_folders() for y in ("libcublasLt.so.1*", "libcudnn.so.9", "libnccl.so.2")])
    return {"gpu": name or "unknown", "date": time.strftime("%Y-%m-%d"), "libraries": libraries}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stages", nargs="*", metavar="STAGE", help=", ".join(STAGES))
    parser.add_argument("--out", type=pathlib.Path, default=HERE / "out")
    parser.add_argument("--seconds", type=float, default=585, help="for all stages together (%(default)s)")
    options = parser.parse_args()
    stages = options.stages or list(STAGES)
    if unknown := [x for x in stages if x not in STAGES]:
        parser.error(f"there is no stage {unknown[0]}: {', '.join(STAGES)}")
    options.out.mkdir(parents=True, exist_ok=True)
    report = Report(options.out / "gpu-check.json", about_machine())
    print(f"GPU: {report.about['gpu']}", flush=True)
    if launcher_starts(report):
        done, whole = 0, sum(SHARES[x] for x in stages)
        for stage in stages:
            done += SHARES[stage]
            Clock.deadline = report.start + options.seconds * done / whole
            run_stage(stage, report, options.out)
    print(f"{sum(r['good'] is True for r in report.rows)} ok, "
          f"{sum(r['good'] is False for r in report.rows)} failed, {report.seconds()} s")
    sys.exit(report.failed)


if __name__ == "__main__":
    main()
