"""The stages: what each of them is made of, as units of pool.py."""
import json
import os
import pathlib
import shutil
import xml.etree.ElementTree as xml

from runner import pool, python_tests
from runner.pool import Result, Unit, broken

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIT = "/usr/lib/llvm-22/bin/lit"
WORKERS = len(os.sched_getaffinity(0))


def call(command, limit_s, environment=None):
    return pool.call(command, limit_s, ROOT, environment)


def checked(name, code, text, result):
    """`result`, unless the process failed without a failed test."""
    if code != 0 and not result.failed:
        result += broken(name, f"ended with exit code {code}\n{text}")
    return result


def junit(cases):
    """Of the cases of a report in JUnit's format."""
    result = Result()
    for case in cases:
        name = f"{case.get('classname')}.{case.get('name')}"
        failures = case.findall("failure")
        if failures:
            result.failed.append((name, "\n".join(x.text or x.get("message", "") for x in failures)))
        elif case.get("status") == "notrun" or case.find("skipped") is not None:
            result.skipped += 1
        else:
            result.passed += 1
        result.times.append((float(case.get("time") or 0), name))
    return result


def formatting(_quick):
    """One case: every tracked C++ file is as clang-format writes it."""
    def act(_worker, limit_s):
        code, text, cpu_s = call(["./dev", "format", "--check"], limit_s)
        return Result(int(code == 0), [("format", text)] if code else [], cpu_s=cpu_s)
    return [Unit("format", "clang-format", act)]


def run_ctest(test, reports, limit_s):
    """GoogleTest's cases where the binary reports them, else one."""
    properties = {x["name"]: x["value"] for x in test.get("properties", [])}
    command, report = test.get("command"), reports / f"{test['name']}.xml"
    if not command or not shutil.which(command[0]):
        return broken(test["name"], f"no such program: {command}")
    environment = {**os.environ, **dict(x.split("=", 1) for x in properties.get("ENVIRONMENT", []))}
    if pathlib.Path(command[0]).name != "mpirun":  # whose processes would write one file
        environment["GTEST_OUTPUT"] = f"xml:{report}"
    code, text, cpu_s = pool.call(command, min(limit_s, properties.get("TIMEOUT", limit_s)),
                                  properties.get("WORKING_DIRECTORY", ROOT), environment)
    if report.exists():
        result = junit(xml.parse(report).getroot().iter("testcase"))
    else:
        result = Result(passed=int(code == 0))
    result.cpu_s = cpu_s
    return checked(test["name"], code, text, result)  # A crash leaves no report of itself.


def ctest(build, stage, quick=False):
    """A unit for each test of CTest; those that take long say so by COST, in seconds."""
    reports = ROOT / build / "test-reports"
    shutil.rmtree(reports, ignore_errors=True)
    reports.mkdir(parents=True)
    code, text, _ = call(["ctest", "--test-dir", build, "--show-only=json-v1"], pool.STAGE_TIMEOUT_S)
    if code != 0:
        return [Unit(stage, build, lambda *_: broken(build, text))]
    units = []
    for test in json.loads(text)["tests"]:
        properties = {x["name"]: x["value"] for x in test.get("properties", [])}
        if not (quick and "slow" in properties.get("LABELS", [])):
            units.append(Unit(stage, test["name"], lambda _, limit_s, test=test: run_ctest(test, reports, limit_s),
                              properties.get("COST", 1)))
    return units


def lit(_quick):
    def part(i):
        def act(_worker, limit_s):
            summary = ROOT / "build" / f"lit.{i}.xml"
            summary.unlink(missing_ok=True)
            code, text, cpu_s = call([LIT, "-sv", "-j1", "--order=lexical", "--num-shards", WORKERS, "--run-shard", i + 1,
                                      "--xunit-xml-output", summary, "build/test"], limit_s)
            if not summary.exists():
                return broken("lit", text)
            result = junit(xml.parse(summary).getroot().iter("testcase"))
            result.cpu_s = cpu_s
            return checked("lit", code, text, result)
        return Unit("lit", f"part {i + 1} of {WORKERS}", act, 30)
    return [part(i) for i in range(WORKERS)]


def unittests(folder, stage, quick=False):
    """One unit that loads the folder's modules, and brings one for each class in them."""
    def process(worker, limit_s):
        if folder not in worker.kept:
            worker.kept[folder] = python_tests.Process(ROOT, folder, ["quick"] if quick else [])
            worker.callback(worker.kept[folder].close)
            worker.kept[folder].costs = worker.kept[folder].read(limit_s)
        return worker.kept[folder]

    def run_class(name):
        def act(worker, limit_s):
            try:
                return Result(**process(worker, limit_s).ask(name, limit_s))
            except (EOFError, BrokenPipeError) as ended:
                worker.kept.pop(folder).close()
                return broken(name, str(ended))
        return act

    def load(worker, limit_s):
        costs = process(worker, limit_s).costs
        return Result(), [Unit(stage, name, run_class(name), cost_s) for name, cost_s in costs.items()]

    return [Unit(stage, f"modules of {folder}", load, 1e6)]


def asan(_quick):
    """The runtime and its readers with sanitizers, in a build of their own. It is made by
    half of the workers while the others go on with the tests of the first build."""
    def build(_worker, limit_s):
        total = Result()
        commands = [["ninja", "-C", "build-asan", "-j", max(1, WORKERS // 2)]]
        if not (ROOT / "build-asan" / "build.ninja").exists():
            commands.insert(0, ["cmake", "--preset", "asan"])
        for command in commands:
            code, text, cpu_s = call(command, limit_s)
            total.cpu_s += cpu_s
            if code != 0:
                return total, [Unit("asan", "build", lambda *_: broken("build-asan", text))]
        return total, ctest("build-asan", "asan")
    return [Unit("asan", "build", build, 2e6)]  # before any other


STAGES = {  # a function of `quick`
    "format": formatting,
    "ctest": lambda quick: ctest("build", "ctest", quick),
    "lit": lit,
    "endtoend": lambda quick: unittests("test/EndToEnd", "endtoend", quick),
    "equivalence": lambda quick: unittests("test/Equivalence", "equivalence", quick),
    "asan": asan,
}
QUICK = [stage for stage in STAGES if stage != "asan"]
