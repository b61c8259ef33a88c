"""The two sides of the comparison: PyTorch in a process that stays, and our tools."""
import json
import os
import pathlib
import random
import statistics
import struct
import subprocess
import tempfile
import time

import cases

HERE = pathlib.Path(__file__).resolve().parent
WARMUP_STEPS = 2
# glibc gives large blocks back to the system at each free; PyTorch is faster when
# it does not, so it gets that setting.
TORCH_ENVIRONMENT = {"MALLOC_MMAP_THRESHOLD_": str(1 << 32),
                     "MALLOC_TRIM_THRESHOLD_": str(1 << 40), "MALLOC_TOP_PAD_": "0"}


class Torch:
    """A worker with one setting, ("compile" | "eager", "fused" | "foreach")."""

    def __init__(self, python, model, precision, setting, threads):
        self.setting = setting
        self.errors = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            [python, str(HERE / "torch_worker.py"), model, precision, *setting,
             str(threads)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=self.errors, text=True, env={**os.environ, **TORCH_ENVIRONMENT})
        self.about = self._answer()

    def _answer(self):
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            self.errors.seek(0)
            raise RuntimeError("PyTorch ended: " + self.errors.read()[-2000:])
        return json.loads(line)

    def steps(self, count):
        """Milliseconds of each of `count` steps."""
        self.process.stdin.write(f"{count}\n")
        self.process.stdin.flush()
        return self._answer()["step_ms"]

    def close(self):
        self.process.stdin.close()
        self.process.wait(timeout=60)


def best_torch(python, model, precision, threads, settings, log):
    """The worker of the fastest setting, and the median of each in ms. A setting that
    PyTorch cannot run on this machine is reported and left out."""
    best, medians = None, {}
    for setting in settings:
        name = "+".join(setting)
        try:
            worker = Torch(python, model, precision, setting, threads)
        except RuntimeError as error:
            log(f"  PyTorch cannot run {name}: {str(error)[-300:]}")
            continue
        medians[name] = statistics.median(worker.steps(3))
        log(f"  PyTorch {worker.about['torch']} {name}: {medians[name]:.0f} ms")
        if best is None or medians[name] < medians["+".join(best.setting)]:
            best, worker = worker, best
        if worker:
            worker.close()
    if best is None:
        raise RuntimeError("PyTorch ran in none of its settings")
    return best, medians


class Ours:
    """Plans of one model and precision, in a folder that lives as long as this."""

    def __init__(self, binaries, model, precision, threads):
        self.binaries, self.threads = pathlib.Path(binaries), threads
        self._folder = tempfile.TemporaryDirectory(prefix="meshwork-bench-")
        self.path = pathlib.Path(self._folder.name)
        config = cases.config(model)
        (self.path / "config.json").write_text(json.dumps(config))
        (self.path / "spec.toml").write_text(cases.spec(precision))
        draw = random.Random(1)
        ids = [draw.randrange(min(config["vocab_size"], 1 << 16)) for _ in range(100000)]
        (self.path / "tokens.u16").write_bytes(struct.pack(f"<{len(ids)}H", *ids))
        self._call("meshwork", "import", "config.json", "-o", "model.mlir")

    def _call(self, tool, *arguments):
        start = time.perf_counter()
        done = subprocess.run([str(self.binaries / tool), *map(str, arguments)],
                              cwd=self.path, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{tool} {arguments}: exit {done.returncode}\n{done.stderr}")
        return time.perf_counter() - start

    def compile_seconds(self, tries=3):
        return min(self._call("meshwork", "compile", "model.mlir", "--spec", "spec.toml",
                              "-o", "plan.mwplan") for _ in range(tries))

    def load_ms(self, tries=5):
        """A whole process that loads and checks the plan and ends."""
        return 1e3 * min(self._call("meshwork-run", "plan.mwplan", "--validate-only")
                         for _ in range(tries))

    def steps(self, count, *options):
        """Metrics of `count` steps after the warm-up."""
        (self.path / "metrics.jsonl").unlink(missing_ok=True)  # a log grows
        self._call("meshwork-run", "plan.mwplan", "--data", "tokens.u16", "--data-type",
                   "u16", "--steps", count + WARMUP_STEPS, "--lr", cases.LEARNING_RATE,
                   "--threads", self.threads, "--metrics", "metrics.jsonl", *options)
        lines = (self.path / "metrics.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines[WARMUP_STEPS:]]

    def profile(self, count):
        """Rows of the profile, one an instruction of the plan."""
        self.steps(count, "--profile-json", "profile.json")
        return json.loads((self.path / "profile.json").read_text())["instructions"]

    def close(self):
        self._folder.cleanup()
