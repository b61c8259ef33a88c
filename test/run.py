#!/usr/bin/env python3
"""Runs every kind of test and adds them up; `./dev test` calls it after the build.

    test/run.py [STAGE...]     all of: format ctest lit equivalence endtoend asan

The last line is "N passed, M failed", with ", K skipped" when tests were; above it stands
again what the failed ones printed. A stage that breaks off, or finds no test at all, counts
as a failure. Exit code 0 only without any.
"""
import dataclasses
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree as xml

ROOT = pathlib.Path(__file__).resolve().parents[1]
LIT = "/usr/lib/llvm-22/bin/lit"
PYTHON = "/usr/bin/python3"
STAGE_TIMEOUT_S = 2400  # A stage that hangs must not hang the machine that runs it.

SHOWN = 6000  # Characters of a failed test that stand again at the end.


@dataclasses.dataclass
class Result:
    passed: int = 0
    failed: list = dataclasses.field(default_factory=list)  # (name, what it printed)
    skipped: int = 0

    def __iadd__(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        return self


def broken(name, why):
    return Result(failed=[(name, why)])


def call(command):
    """The exit code and what it printed, which is shown as it comes."""
    print("$ " + " ".join(map(str, command)), flush=True)
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True,
                               stderr=subprocess.STDOUT, errors="replace",
                               stdin=subprocess.DEVNULL, start_new_session=True)
    # The group, since what a test started may hold the pipe open.
    timer = threading.Timer(STAGE_TIMEOUT_S, os.killpg, (process.pid, signal.SIGKILL))
    timer.start()
    try:
        lines = []
        with process.stdout as output:
            for line in output:
                sys.stdout.write(line)
                sys.stdout.flush()
                lines.append(line)
        return process.wait(), "".join(lines)
    finally:
        timer.cancel()


def checked(code, result):
    """`result`, unless the process failed without a failed test, or ran none."""
    if (code != 0 and not result.failed) or result.passed + len(result.failed) == 0:
        result += broken("stage", f"ended with exit code {code} and {result.passed} passed tests")
    return result


def junit(cases):
    """Of the cases of a report in JUnit's format."""
    result = Result()
    for case in cases:
        failures = case.findall("failure")
        if failures:
            name = f"{case.get('classname')}.{case.get('name')}"
            result.failed.append((name, "\n".join(x.text or x.get("message", "") for x in failures)))
        elif case.get("status") == "notrun" or case.find("skipped") is not None:
            result.skipped += 1
        else:
            result.passed += 1
    return result


def formatting():
    """One case: every tracked C++ file is as clang-format writes it."""
    code, text = call(["./dev", "format", "--check"])
    return Result(passed=1) if code == 0 else broken("format", text)


def ctest(build):
    """GoogleTest's cases where a binary reports them, else one for the binary."""
    reports = ROOT / build / "test-reports"
    shutil.rmtree(reports, ignore_errors=True)
    reports.mkdir(parents=True)
    summary = reports / "ctest" / "summary.xml"
    summary.parent.mkdir()
    code, text = call(["env", f"GTEST_OUTPUT=xml:{reports}/", "ctest", "--test-dir", build, "-j2",
                       "--output-on-failure", "--output-junit", summary])
    if not summary.exists():
        return broken(build, text)
    total = Result()
    for test in xml.parse(summary).getroot().iter("testcase"):
        name, passed = test.get("name"), test.get("status") == "run"  # else "fail", or "notrun"
        report = reports / f"{name}.xml"
        if report.exists():
            result = junit(xml.parse(report).getroot().iter("testcase"))
        else:
            result = Result(passed=int(passed))
        if not passed and not result.failed:  # A crash leaves no report of itself.
            result += broken(name, test.findtext("system-out") or test.get("status"))
        total += result
    return checked(code, total)


def lit():
    reports = ROOT / "build" / "test-reports"
    reports.mkdir(parents=True, exist_ok=True)
    summary = reports / "lit.junit"
    summary.unlink(missing_ok=True)
    code, text = call([LIT, "-sv", "-j2", "--xunit-xml-output", summary, "build/test"])
    if not summary.exists():
        return broken("lit", text)
    return checked(code, junit(xml.parse(summary).getroot().iter("testcase")))


def unittests(folder):
    # What tests print themselves is shown of those that fail.
    code, text = call([PYTHON, "-m", "unittest", "discover", "--verbose", "--buffer", "-s", folder])
    ends = list(re.finditer(r"^Ran (\d+) tests? in .*$", text, re.M))
    if not ends:
        return broken(folder, text)
    ran = ends[-1]  # A test may have printed another one before.
    skipped = re.search(r"\bskipped=(\d+)", text[ran.end():])
    failed = re.findall(r"^={70}\n((?:FAIL|ERROR|UNEXPECTED SUCCESS): [^\n]*)\n(.*?)(?=^={70}$|\Z)",
                        text[:ran.start()], re.M | re.S)
    skipped = int(skipped[1]) if skipped else 0
    return checked(code, Result(max(0, int(ran[1]) - len(failed) - skipped), failed, skipped))


def asan():
    """The runtime and its readers with sanitizers; needs a build of its own."""
    commands = [["ninja", "-C", "build-asan"]]
    if not (ROOT / "build-asan" / "build.ninja").exists():
        commands.insert(0, ["cmake", "--preset", "asan"])
    for command in commands:
        code, text = call(command)
        if code != 0:
            return broken("build-asan", text)
    return ctest("build-asan")


STAGES = {
    "format": formatting,
    "ctest": lambda: ctest("build"),
    "lit": lit,
    "endtoend": lambda: unittests("test/EndToEnd"),
    "equivalence": lambda: unittests("test/Equivalence"),
    "asan": asan,
}


def main(names):
    unknown = [name for name in names if name not in STAGES]
    if unknown:
        print(f"unknown stage {unknown[0]!r}, expected {' '.join(STAGES)}", file=sys.stderr)
        return 64
    rows = []
    for name in names or STAGES:
        print(f"\n== {name}", flush=True)
        start = time.monotonic()
        rows.append((name, STAGES[name](), time.monotonic() - start))
    return show(rows)


def show(rows):
    """What failed, a line for each stage, and the sum. The exit code."""
    total = Result()
    for stage, result, _ in rows:
        for name, text in result.failed:
            print(f"\n== failed in {stage}: {name}\n{text.strip()[-SHOWN:]}")
        total += result
    print()
    for stage, result, seconds in rows:
        print(f"{stage:12} {result.passed:5} passed {len(result.failed):4} failed "
              f"{result.skipped:4} skipped {seconds:7.0f} s")
    print(f"{total.passed} passed, {len(total.failed)} failed"
          + (f", {total.skipped} skipped" if total.skipped else ""))
    return 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
