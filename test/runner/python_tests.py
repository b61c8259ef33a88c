"""unittest's classes of a folder as units: a process for each worker imports the folder's
modules, and PyTorch with them, once, and runs one class after another.

Run as a program it is that process: `python_tests.py FOLDER [quick]` prints the classes as
JSON, then a result for each name it reads. With `quick`, tests and classes with an attribute
`slow` are left out. A class may say what it takes: `cost_s`, in seconds.
"""
import contextlib
import io
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

PYTHON = "/usr/bin/python3"


class Process:
    def __init__(self, root, folder, options):
        self.log = tempfile.TemporaryFile("w+", errors="replace")
        self.process = subprocess.Popen([PYTHON, __file__, folder, *options], cwd=root, text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=self.log, start_new_session=True)

    def read(self, limit_s):
        """Its next answer; EOFError, with what it printed, when there is none."""
        timer = threading.Timer(limit_s, os.killpg, (self.process.pid, signal.SIGKILL))
        timer.start()
        line = self.process.stdout.readline()
        timer.cancel()
        if line:
            return json.loads(line)
        code = self.process.wait()
        self.log.seek(0)
        raise EOFError(f"ended with exit code {code}\n{self.log.read()[-6000:]}")

    def ask(self, name, limit_s):
        self.process.stdin.write(name + "\n")
        self.process.stdin.flush()
        return self.read(limit_s)

    def close(self):
        if self.log.closed:
            return
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()
        self.log.close()


def run_class(folder, name):
    """In this process."""
    outcome = unittest.TextTestRunner(stream=io.StringIO(), buffer=True, resultclass=_Timed).run(folder[name])
    failed = [("FAIL", *x) for x in outcome.failures] + [("ERROR", *x) for x in outcome.errors]
    failed += [("UNEXPECTED SUCCESS", test, "") for test in outcome.unexpectedSuccesses]
    bad = {_whole(test).id() for _, test, _ in failed}
    skipped = {_whole(test).id() for test, _ in outcome.skipped} - bad
    return {"passed": len(outcome.ran - bad - skipped), "skipped": len(skipped), "times": outcome.times,
            "failed": [(f"{kind}: {test}", text) for kind, test, text in failed]}


class _Timed(unittest.TextTestResult):
    def __init__(self, *arguments, **more):
        super().__init__(*arguments, **more)
        self.ran, self.times = set(), []

    def startTest(self, test):
        super().startTest(test)
        self.ran.add(test.id())
        self._start = _cpu()

    def stopTest(self, test):
        super().stopTest(test)
        self.times.append((_cpu() - self._start, test.id()))


def _whole(test):
    """Of a subtest, its test."""
    return getattr(test, "test_case", test)


def _cpu():
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(x.ru_utime + x.ru_stime for x in used)


def _flat(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from _flat(test)
        else:
            yield test


def load(folder, quick):
    """Name of a class -> its tests. A module that cannot be loaded is one that fails."""
    classes = {}
    for test in _flat(unittest.defaultTestLoader.discover(folder)):
        if quick and (getattr(test, "slow", False) or
                      getattr(getattr(test, test._testMethodName), "slow", False)):
            continue
        of_class = f"{type(test).__module__}.{type(test).__qualname__}"
        name = test.id() if of_class.startswith("unittest.") else of_class
        classes.setdefault(name, unittest.TestSuite()).addTest(test)
    return classes


def main(folder, *options):
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # What tests print is no answer.
    classes = load(folder, "quick" in options)
    if "torch" in sys.modules:  # Other workers have the other cores.
        sys.modules["torch"].set_num_threads(1)
    costs = {name: getattr(next(iter(suite)), "cost_s", suite.countTestCases()) for name, suite in classes.items()}
    print(json.dumps(costs), file=answers, flush=True)
    counted = 0  # The first class is charged with what loading takes.
    for line in sys.stdin:
        answer = run_class(classes, line.strip())
        answer["cpu_s"], counted = _cpu() - counted, _cpu()
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
