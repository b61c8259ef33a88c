#!/usr/bin/env python3
"""Runs every kind of test and adds them up; `./dev test` calls it after the build.

    test/run.py [STAGE...]     all of: format ctest lit equivalence endtoend asan

The last line is "N passed, M failed", with ", K skipped" when tests were. A stage that
breaks off, or finds no test at all, counts as a failure. Exit code 0 only without any.
"""
import collections
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

Count = collections.namedtuple("Count", "passed failed skipped")
BROKEN = Count(0, 1, 0)


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


def checked(code, count):
    """`count`, unless the process failed without a failed test, or ran none."""
    if (code != 0 and count.failed == 0) or count.passed + count.failed == 0:
        print(f"the stage ended with exit code {code} and {count}", flush=True)
        return Count(count.passed, count.failed + 1, count.skipped)
    return count


def googletest_counts(folder):
    """Cases of each binary that left a report there, by the binary's name."""
    counts = {}
    for report in folder.glob("*.xml"):
        root = xml.parse(report).getroot()
        cases = list(root.iter("testcase"))
        failed = sum(case.find("failure") is not None for case in cases)
        skipped = sum(case.get("status") == "notrun" or case.find("skipped") is not None
                      for case in cases)
        counts[report.stem] = Count(len(cases) - failed - skipped, failed, skipped)
    return counts


def formatting():
    """One case: every tracked C++ file is as clang-format writes it."""
    code, _ = call(["./dev", "format", "--check"])
    return Count(int(code == 0), int(code != 0), 0)


def ctest(build):
    """GoogleTest's cases where a binary reports them, else one for the binary."""
    reports = ROOT / build / "test-reports"
    shutil.rmtree(reports, ignore_errors=True)
    reports.mkdir(parents=True)
    summary = reports / "ctest" / "summary.xml"
    summary.parent.mkdir()
    code, _ = call(["env", f"GTEST_OUTPUT=xml:{reports}/", "ctest", "--test-dir", build, "-j2",
                    "--output-on-failure", "--output-junit", summary])
    if not summary.exists():
        return BROKEN
    cases, total = googletest_counts(reports), Count(0, 0, 0)
    for test in xml.parse(summary).getroot().iter("testcase"):
        passed = test.get("status") == "run"  # else "fail", or "notrun" without a binary
        count = cases.pop(test.get("name"), Count(int(passed), 0, 0))
        if not passed and count.failed == 0:  # A crash leaves no report of itself.
            count = count._replace(failed=1)
        total = Count(*map(sum, zip(total, count)))
    return checked(code, total)


def lit():
    reports = ROOT / "build" / "test-reports"
    reports.mkdir(parents=True, exist_ok=True)
    summary = reports / "lit.junit"
    summary.unlink(missing_ok=True)
    code, _ = call([LIT, "-sv", "-j2", "--xunit-xml-output", summary, "build/test"])
    if not summary.exists():
        return BROKEN
    cases = list(xml.parse(summary).getroot().iter("testcase"))
    failed = sum(case.find("failure") is not None for case in cases)
    skipped = sum(case.find("skipped") is not None for case in cases)
    return checked(code, Count(len(cases) - failed - skipped, failed, skipped))


def unittests(folder):
    code, text = call([PYTHON, "-m", "unittest", "discover", "-v", "-s", folder])
    runs = list(re.finditer(r"^Ran (\d+) tests? in", text, re.M))
    if not runs:
        return BROKEN
    ran = runs[-1]  # A test may have printed another one before.
    result = text[ran.end():]

    def number(word):
        found = re.search(rf"\b{word}=(\d+)", result)
        return int(found[1]) if found else 0
    failed = number("failures") + number("errors") + number("unexpected successes")
    skipped = number("skipped")
    return checked(code, Count(max(0, int(ran[1]) - failed - skipped), failed, skipped))


def asan():
    """The runtime and its readers with sanitizers; needs a build of its own."""
    if not (ROOT / "build-asan" / "build.ninja").exists():
        if call(["cmake", "--preset", "asan"])[0] != 0:
            return BROKEN
    if call(["ninja", "-C", "build-asan"])[0] != 0:
        return BROKEN
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
        count = STAGES[name]()
        rows.append((name, count, time.monotonic() - start))
    print()
    for name, count, seconds in rows:
        print(f"{name:12} {count.passed:5} passed {count.failed:4} failed "
              f"{count.skipped:4} skipped {seconds:7.0f} s")
    passed, failed, skipped = (sum(column) for column in zip(*(row[1] for row in rows)))
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
