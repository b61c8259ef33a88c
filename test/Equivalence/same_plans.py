#!/usr/bin/env python3
"""Whether two builds write the same plans, byte for byte, and explain them in the same words.

    test/Equivalence/same_plans.py BEFORE/bin AFTER/bin                 # as a change that only moves code must
    test/Equivalence/same_plans.py BEFORE/bin AFTER/bin --drawn 300     # more of the drawn specs
    test/Equivalence/same_plans.py BEFORE/bin AFTER/bin --auto 300      # with "auto" keys and little memory
    test/Equivalence/same_plans.py BEFORE/bin AFTER/bin --only zero3 --keep FOLDER
    test/Equivalence/same_plans.py BEFORE/bin AFTER/bin --without-code  # seconds, not minutes: what the phases make

Cases are the examples, those of same_bits.py, FP8 weights, and specs drawn at random; each is compiled for
x86-64-v3 and for sm_90a. What a build refuses, it must refuse in the same words. A case that differs
is named with the first table of Plan.fbs that does. `--keep` remembers in a folder what a build said, so
that a build that is compared often compiles each case once. `--without-code` compares the module after the
last phase, and the estimate: all that a plan is made of but machine code. Exit code 0 if nothing differs.
"""
import argparse
import concurrent.futures
import hashlib
import json
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

import drawn
import same_bits
import plan_file
import tools

TARGETS = {"x86-64-v3": ("cpu", "x86-64-v3"), "sm_90a": ("cuda", "sm_90a")}
EXPLAINED = ((), ("--json",), ("--schedule",))
EXAMPLES = tools.ROOT / "examples"
SCHEMA = tools.ROOT / "include" / "meshwork" / "Plan" / "Plan.fbs"
DRAWN = 40


class Case:
    """A model and a spec, under names that are the same for both builds: plans hold them."""

    def __init__(self, name, model, spec, target, settings=()):
        self.name, self.model, self.spec, self.target = f"{name}/{target}", model, spec, TARGETS[target]
        self.settings = [part for setting in settings for part in ("--set", setting)]

    def compile(self, binary, folder, *options):
        (folder / "model.json").write_text(self.model)
        (folder / "spec.toml").write_text(self.spec)
        device, arch = self.target
        return call(binary, folder, "compile", "model.json", "--spec", "spec.toml", "--set", f'target.device="{device}"',
                    "--set", f'target.arch="{arch}"', *self.settings, *(options or ("-o", "plan.mwplan")))

    def key(self):
        parts = [self.model, self.spec, self.target, *([self.settings] if self.settings else [])]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:24]

    def peak(self, binary):
        """Bytes of the rank that needs most; nothing where the spec is refused."""
        with tempfile.TemporaryDirectory(prefix="meshwork-") as folder:
            code, said = self.compile(binary, pathlib.Path(folder), "--estimate", "--json")
        return None if code else json.loads(said)["memory_per_rank_bytes"]["peak"]


def call(binary, folder, *arguments):
    """(exit code, what it wrote). Progress on the error stream holds times, and is no part of a good answer."""
    done = subprocess.run([str(binary), *arguments], cwd=folder, capture_output=True, text=True,
                          errors="replace", timeout=tools.TIMEOUT_S, stdin=subprocess.DEVNULL)
    return [done.returncode, done.stdout + (done.stderr if done.returncode else "")]


def digest(data):
    return hashlib.sha256(data).hexdigest()


def answers(case, binary, folder):
    """What this build says of `case`: a digest, or the text itself where it is short."""
    code, said = case.compile(binary, folder)
    found = {"exit code": code, "words of compile": said}
    plan = folder / "plan.mwplan"
    if code == 0:
        # The frame has the version of the format, which may rise without any change here.
        found["plan"] = digest(plan_file.flat_buffer(plan))
        for options in EXPLAINED:
            found[" ".join(("explain", *options))] = digest(repr(call(binary, folder, "explain", "plan.mwplan",
                                                                      *options)).encode())
    return found


def answers_without_code(case, binary, folder):
    found = {}
    for options in (("--compile-to", "memory"), ("--estimate", "--json")):
        code, said = case.compile(binary, folder, *options)
        found[" ".join(options)] = digest(said.encode()) if code == 0 else [code, said]
    return found


class Build:
    def __init__(self, folder, keep, has_code=True):
        self.binary = pathlib.Path(folder).resolve() / "meshwork"
        self.ask = answers if has_code else answers_without_code
        part = "" if has_code else "-without-code"
        self.kept = keep and pathlib.Path(keep) / (digest(self.binary.read_bytes())[:24] + part)

    def answers(self, case):
        kept = self.kept and self.kept / f"{case.key()}.json"
        if kept and kept.exists():
            return json.loads(kept.read_text())
        with tempfile.TemporaryDirectory(prefix="meshwork-") as folder:
            found = self.ask(case, self.binary, pathlib.Path(folder))
        if kept:
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_text(json.dumps(found))
        return found

    def tables(self, case):
        """The plan as flatc prints it."""
        with tempfile.TemporaryDirectory(prefix="meshwork-") as name:
            folder = pathlib.Path(name)
            case.compile(self.binary, folder)
            (folder / "tables.bin").write_bytes(plan_file.flat_buffer(folder / "plan.mwplan"))
            subprocess.run(["flatc", "--json", "--strict-json", "--raw-binary", "-o", name, str(SCHEMA), "--",
                            str(folder / "tables.bin")], check=True)
            return json.loads((folder / "tables.json").read_text())


def first_difference(before, after, place=""):
    """Where two plans part, as `programs[0].views[3].offset: 64, not 0`; None if nowhere."""
    if before == after:
        return None
    if isinstance(before, dict) and isinstance(after, dict):
        keys = [*before, *(key for key in after if key not in before)]
        parts = ((f"{place}.{key}".lstrip("."), before.get(key), after.get(key)) for key in keys)
    elif isinstance(before, list) and isinstance(after, list):
        if len(before) != len(after) and not any(isinstance(item, (dict, list)) for item in before + after):
            return f"{place}: {len(after)} of them, not {len(before)}"
        longest = max(len(before), len(after))
        pad = [None] * longest
        parts = ((f"{place}[{i}]", a, b) for i, (a, b) in enumerate(zip((before + pad)[:longest],
                                                                        (after + pad)[:longest])))
    else:
        return f"{place}: {str(after)[:80]}, not {str(before)[:80]}"
    return next(filter(None, (first_difference(old, new, at) for at, old, new in parts)), None)


def difference(case, before, after):
    """A line about `case`, or None."""
    old, new = before.answers(case), after.answers(case)
    wrong = [key for key in {**old, **new} if old.get(key) != new.get(key)]
    if "plan" in wrong and "plan" in old and "plan" in new:
        wrong[wrong.index("plan")] = first_difference(before.tables(case), after.tables(case)) or "order of tables"
    return f"{case.name}: {'; '.join(wrong)}" if wrong else None


def examples():
    def texts(model, spec):
        return (EXAMPLES / model).read_text(), (EXAMPLES / spec).read_text()
    for model in sorted(path.name for path in EXAMPLES.glob("*.json")):
        yield model, *texts(model, "f32.toml")
    for spec in sorted(path.name for path in EXAMPLES.glob("*.toml")):
        yield spec, *texts("gpt2-124m.json" if spec == "gpt2-124m.toml" else "llama-bytes.json", spec)


def recorded():
    for case in same_bits.cases():
        yield case.name, json.dumps(same_bits.MODELS[case.model]), case.text()


def fp8():
    """Weights that ZeRO-3 gathers, as 8 bits: a list of their own casts them once a step."""
    model = (EXAMPLES / "llama-tiny.json").read_text()
    for name in ("dp2", "zero3"):
        for casts in ("step", "microbatch"):
            yield (f"fp8 {name} {casts}", model, (EXAMPLES / f"{name}.toml").read_text() +
                   f'[precision]\ncompute = "bf16"\nmatmul = "fp8"\nweight_casts = "{casts}"\n')


def draws(count):
    """Those of test_random_specs.py, by the same numbers."""
    for seed in range(1, count + 1):
        draw = random.Random(seed)
        model = drawn.Model(draw)
        training = drawn.Training(draw)
        layout = drawn.Layout(draw, model, training)
        yield f"drawn {seed}", json.dumps(model.config), layout.spec()


AUTOS = ("batch.micro", "context.method", "experts.exchange", "zero.gathered", "zero.reduce", "pipeline.layers",
         "pipeline.schedule", "recompute.policy", "offload.activations")


def with_autos(name, model, spec, target, binary):
    """Some keys are "auto", and there is about as much memory as the spec needs as it is: less, or a little more."""
    draw = random.Random(name + target)
    chosen = [key for key in AUTOS if draw.random() < 0.6]
    peak = Case(name, model, spec, target).peak(binary)
    return peak and Case(f"auto {name}", model, spec, target, (
        *(f'{key}="auto"' for key in chosen), f"expect.memory_per_rank={int(peak * draw.uniform(0.5, 1.1))} B"))


def cases(count, autos, pattern, binary):
    for name, model, spec in (*examples(), *recorded(), *fp8(), *draws(count)):
        for target in TARGETS:
            case = Case(name, model, spec, target)
            if pattern in case.name:
                yield case
    for name, model, spec in draws(autos):
        for target in TARGETS:
            if pattern in f"auto {name}/{target}" and (case := with_autos(name, model, spec, target, binary)):
                yield case


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", help="the folder of one build's tools")
    parser.add_argument("after", help="that of the other")
    parser.add_argument("--drawn", type=int, default=DRAWN, help="how many specs are drawn (%(default)s)")
    parser.add_argument("--auto", type=int, default=0, help="how many of them get \"auto\" keys, too (%(default)s)")
    parser.add_argument("--only", default="", help="part of the names of the cases to compare")
    parser.add_argument("--keep", help="a folder for what builds said")
    parser.add_argument("--without-code", action="store_true", help="compare what plans are made of but machine code")
    parser.add_argument("--jobs", type=int, default=2, help="cases at once (%(default)s)")
    options = parser.parse_args()
    if not shutil.which("flatc"):
        parser.error("flatc is not installed; Debian's package is flatbuffers-compiler")
    before, after = (Build(folder, options.keep, not options.without_code)
                     for folder in (options.before, options.after))
    chosen = list(cases(options.drawn, options.auto, options.only, before.binary))
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        found = pool.map(lambda case: difference(case, before, after), chosen)
        lines = [print(line, flush=True) or line for line in found if line]
    print(f"{len(chosen)} compared, {len(lines)} differ")
    return bool(lines) or not chosen


if __name__ == "__main__":
    sys.exit(main())
