"""Stages `speed:MODEL`: whole steps, and where their time goes. Told, not judged."""
import functools
import json
import re
import statistics

import cases
import launcher
import libraries
import process
import rows
from stages import Case

ANY_PEAK = 1000  # TFLOP/s, to read the flops of a step off its mfu
WARM_STEPS = 2   # graphs are made, clocks go up
# Who may run attention, and the option that asks for it.
WAYS = {"our kernels": ["--no-wgmma-attention"], "cuDNN": ["--cudnn-attention"], "wgmma": ["--wgmma-attention"]}
RATES_S = 120


@functools.lru_cache(maxsize=None)
def torch_python():
    """A Python whose PyTorch sees the GPU."""
    for python in libraries.PYTHONS:
        sees = process.call([python, "-c", "import torch; assert torch.cuda.is_available()"],
                            environment=libraries.OUTSIDE)
        if sees.returncode == 0:
            return python
    raise process.NotRun("no PyTorch that sees the GPU")


def json_lines(text):
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def rates_of(folder, products, attention):
    """PyTorch's libraries on these shapes: lines as torch_rates.py says."""
    shapes = folder / "shapes.json"
    shapes.write_text(json.dumps({"products": products, "attention": attention}))
    return process.call([torch_python(), launcher.HERE / "torch_rates.py", shapes], limit_s=RATES_S,
                        environment=libraries.OUTSIDE)


class Timed:
    """One model: what its cases learn of it."""

    def __init__(self, name, gpu, small):
        self.name, self.case = name, {**cases.TIMED, **cases.ATTENTION}[name]
        self.gpu, self.small = gpu, small
        self.step_ms = self.mfu = self.copy_gbytes = None
        self.profile, self.apart = [], []  # as --tune-matmuls chose
        self.ways = {}                     # instructions with attention by each of WAYS that ran
        self.rates = []

    def cases(self):
        made = [("step", self.step), ("profile", self.take_profile), ("rates", self.take_rates),
                ("ways of attention", self.ways_of_attention), ("step untuned", self.step_untuned)]
        if self.case.get("apart"):
            made.append(("without epilogues", self.without_epilogues))
        made += [("products", self.products), ("attention", self.attention), ("memory", self.memory)]
        return [Case(f"speed {self.name} {what}", functools.partial(run, f"speed {self.name} {what}"))
                for what, run in made]

    def timed(self, folder, *options, plan=None, steps=10):
        """Metrics of warm steps, and the launcher's notes."""
        steps = WARM_STEPS + (2 if self.small else steps)
        lines, notes = launcher.metrics(plan or f"timed-{self.name}", folder, *options, steps=steps)
        return lines[WARM_STEPS:], notes

    def profiled(self, folder, *options, plan=None):
        """Metrics and instructions of a run that times each one; its steps are no measure."""
        path = folder / f"{self.name}-profile.json"
        lines, _ = self.timed(folder, "--profile-json", path, *options, plan=plan, steps=3)
        return lines, json.loads(path.read_text())["instructions"]

    def step(self, what, report, folder):
        lines, notes = self.timed(folder, "--tune-matmuls", "--measure-peak")
        self.step_ms = statistics.median(x["step_ms"] for x in lines)
        self.mfu = statistics.median(x["mfu"] or 0 for x in lines)
        report.add(what, None, f"{self.step_ms:.2f} ms, {lines[-1]['tokens_per_s']:.0f} tokens/s, "
                   f"{100 * self.mfu:.1f} % of the measured bf16 peak", step_ms=self.step_ms, mfu=self.mfu,
                   lines=notes, steps_ms=[x["step_ms"] for x in lines], memory_peak_bytes=lines[-1]["memory_peak_bytes"])

    def take_profile(self, what, report, folder):
        lines, self.profile = self.profiled(folder, "--tune-matmuls", "--peak-tflops", ANY_PEAK)
        last = lines[-1]
        flops = (last["mfu"] or 0) * ANY_PEAK * 1e9 * last["step_ms"]
        busy = sum(x["ms_per_step"] for x in self.profile)
        text, told = rows.where_time_goes(busy, self.step_ms, flops, self.mfu, self.gpu)
        report.add(what, None, text, instructions_ms=busy, flops_per_step=flops, **told,
                   table=rows.by_operation(self.profile))

    def take_rates(self, what, report, folder):
        if not self.profile:
            raise process.NotRun("there is no profile to take shapes from")
        done = rates_of(folder, *([g.shape for g in rows.groups(self.profile, kind)]
                                  for kind in ("product", "attention")))
        self.rates = json_lines(done.stdout)
        peaks = {k: v for line in self.rates for k, v in line.items() if k in ("copy_gbytes", "matmul_tflops")}
        self.copy_gbytes = peaks.get("copy_gbytes")
        if not peaks:
            raise process.NotRun((done.stderr.strip().splitlines() or ["no output"])[-1])
        report.add(what, None, "by PyTorch: " + ", ".join(f"{k} {v:.0f}" for k, v in peaks.items()) + (
            "" if done.returncode == 0 else f"; the rest was not run: {done.stderr.strip()[-200:]}"), **peaks)

    def ways_of_attention(self, what, report, folder):
        """--tune-matmuls takes the faster of two; without it, each is asked for."""
        lacking = []
        for way, options in WAYS.items():
            try:
                _, self.ways[way] = self.profiled(folder, *options)
            except launcher.Unavailable as error:
                lacking.append(f"{way}: not run: {error}")
        ms = {way: sum(g.ms for g in rows.groups(x, "attention")) for way, x in self.ways.items()}
        report.add(what, None, "attention " + ", ".join(f"{x:.2f} ms by {way}" for way, x in ms.items()),
                   attention_ms=ms, lines=lacking)

    def step_untuned(self, what, report, folder):
        """What a user gets who asks for nothing: bits that repeat."""
        lines, notes = self.timed(folder)
        step = statistics.median(x["step_ms"] for x in lines)
        ratio = self.step_ms / step if self.step_ms else None
        report.add(what, None, f"{step:.2f} ms" + (f", {ratio:.3f} times as fast as --tune-matmuls" if ratio else ""),
                   untuned_step_ms=step, ratio=ratio, lines=notes)

    def without_epilogues(self, what, report, folder):
        plan = f"timed-{self.name}-apart"
        lines, _ = self.timed(folder, "--tune-matmuls", plan=plan)
        step = statistics.median(x["step_ms"] for x in lines)
        report.add(what, None, f"{step:.2f} ms a step without epilogues of products", apart_step_ms=step)
        _, self.apart = self.profiled(folder, "--tune-matmuls", plan=plan)

    def unknown(self):
        """What the tables lack."""
        known = {"PyTorch's rates": self.rates, **{f"attention by {way}": self.ways.get(way) for way in WAYS},
                 "without epilogues": self.apart or not self.case.get("apart")}
        lacks = [name for name, found in known.items() if not found]
        return f" (not run: {', '.join(lacks)})" if lacks else ""

    def needs_profile(self):
        if not self.profile:
            raise process.NotRun("there is no profile")

    def products(self, what, report, _folder):
        self.needs_profile()
        table = rows.products(self.profile, self.apart, self.rates)
        report.add(what, None, "ms a call; plain: PyTorch's product of the same shape without bias and epilogue; apart: "
                   "ours in the plan without epilogues" + self.unknown(), table=table)

    def attention(self, what, report, _folder):
        self.needs_profile()
        report.add(what, None, "TFLOP/s of what the mask leaves" + self.unknown(),
                   table=rows.attention(self.profile, self.ways, self.rates))

    def memory(self, what, report, _folder):
        self.needs_profile()
        table, slow = rows.memory_bound(self.profile, self.copy_gbytes)
        report.add(what, None, "instructions that move bytes alone, by the time above a copy's" + self.unknown(),
                   table=table, slow=slow)


def speed(name, gpu, small):
    return lambda: Timed(name, gpu, small).cases()
