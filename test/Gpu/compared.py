"""Stages `kernels`, `wgmma` and `copies`: every instruction of real shapes on the GPU against the CPU, from the same
inputs, and two tests of the runtime's, which find the GPU there and an emulated one elsewhere."""
import functools
import re

import cases
import launcher
import process
from stages import Case

DIFFERS = re.compile(r"^differs by (\S+) times what rounding allows: (.*)$", re.MULTILINE)
# The end of the run's own summary: one line a kind of instruction.
KIND = re.compile(r"^.*results compared with the CPU's, the furthest at .*$", re.MULTILINE)
# What their test says on another GPU.
UNFIT = "expected 9.0"
FURTHEST = re.compile(r"the furthest at (\S+) of")


def kernels():
    made = []
    for precision in cases.ORDER_OF_PRECISIONS:
        for name, case in cases.COMPARED.items():
            if precision in case.get("precisions", cases.USUAL_PRECISIONS):
                made += [Case(" ".join(["kernels", name, precision, *option]),
                              functools.partial(compare, name, precision, option))
                         for option in cases.COMPARED_WITH[precision]]
    return made


def wgmma():
    """The kernels that run attention on a GPU of compute capability 9.0 alone, in shapes of all kinds."""
    return [Case("wgmma shapes", shapes)]


def copies():
    """Copies between the memories of the GPU and the host, on channels, in whole runs; and lists whose turns are counted."""
    return [Case("copies to the host", lambda report, _folder: passes(report, "copies to the host", "copies-test", 50)),
            Case("counted turns", lambda report, _folder: passes(report, "counted turns", "counted-test", 50))]


def shapes(report, _folder):
    passes(report, "wgmma shapes", "wgmma-test", 120)


def passes(report, what, program, limit_s):
    done = process.ended([launcher.HERE / program, "--gtest_brief=1"], limit_s=limit_s)
    lines = (done.stdout + done.stderr).splitlines()
    if any(UNFIT in line for line in lines):
        raise process.NotRun("the GPU has another compute capability than 9.0")
    failed = [line for line in lines if not line.startswith(("[==", "[  PASSED"))]
    report.add(what, done.returncode == 0, next((x for x in reversed(lines) if "PASSED" in x or "FAILED" in x),
                                                          f"exit {done.returncode}"), lines=failed[:40])


def compare(name, precision, option, report, _folder):
    what = " ".join(["kernels", name, precision, *option])
    done = launcher.train(f"compare-{name}-{precision}", "--compare-cpu", *cases.COMPARED[name].get("options", []),
                          *option)
    if option and done.returncode == launcher.UNAVAILABLE:
        raise process.NotRun(done.stderr.strip()[-400:])  # without cuDNN others are what runs
    tell(report, what, done)


def furthest(kinds):
    """The kind of instruction that came the furthest from the CPU's."""
    return max(kinds, key=lambda line: float(FURTHEST.search(line).group(1)))


def tell(report, what, done):
    """All that differs, worst first, as the launcher lists it."""
    differences = [{"times_allowed": times, "where": where} for times, where in DIFFERS.findall(done.stdout)]
    kinds = [" ".join(line.split()) for line in KIND.findall(done.stdout)]
    lines = [f"{x['times_allowed']} times what rounding allows: {x['where']}" for x in differences]
    if differences:
        text = f"{len(differences)} results differ from the CPU's, worst first"
    elif done.returncode == 0 and kinds:
        text = f"every instruction as on the CPU; {furthest(kinds)}"
    else:
        text = launcher.message(done)
    report.add(what, done.returncode == 0 and bool(kinds) and not differences, text,
               lines=lines + launcher.notes(done), differences=differences, kinds=kinds)
