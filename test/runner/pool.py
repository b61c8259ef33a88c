"""Units of tests from all stages, on as many workers as there are cores.

    rows, slowest = pool.run(units, workers=2)

Units that cost most begin first, so that no long one is left at the end. A unit may bring
further ones: those of a build that it made.
"""
import contextlib
import dataclasses
import heapq
import itertools
import os
import signal
import subprocess
import threading
import time
import traceback
import typing

# Of a unit, and of a stage on all workers: what hangs must not hang the machine that runs it.
STAGE_TIMEOUT_S = 2400


@dataclasses.dataclass
class Result:
    passed: int = 0
    failed: list = dataclasses.field(default_factory=list)  # (name, what it printed)
    skipped: int = 0
    cpu_s: float = 0
    times: list = dataclasses.field(default_factory=list)  # (seconds, name) of single tests; of Python's, of processor

    def __iadd__(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        self.cpu_s += other.cpu_s
        self.times += other.times
        return self


def broken(name, why):
    return Result(failed=[(name, why)])


@dataclasses.dataclass
class Unit:
    """What one worker does at a time: `act(worker, limit_s)` is a Result, or a Result and
    further units."""
    stage: str
    name: str
    act: typing.Callable
    cost_s: float = 1


class Worker(contextlib.ExitStack):
    """What units keep for those that follow on the same worker, closed at the end."""

    def __init__(self):
        super().__init__()
        self.kept = {}


@dataclasses.dataclass
class Row:
    """A stage: its tests, and how long its units took."""
    stage: str
    result: Result = dataclasses.field(default_factory=Result)
    seconds: float = 0


def call(command, limit_s, folder, environment=None):
    """The exit code, what it printed, and seconds of processor."""
    process = subprocess.Popen(list(map(str, command)), cwd=folder, stdout=subprocess.PIPE, text=True,
                               stderr=subprocess.STDOUT, errors="replace", stdin=subprocess.DEVNULL,
                               env=environment, start_new_session=True)
    # The group, since what a test started may hold the pipe open.
    timer = threading.Timer(limit_s, os.killpg, (process.pid, signal.SIGKILL))
    timer.start()
    try:
        with process.stdout as output:
            text = output.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        return process.returncode, text, usage.ru_utime + usage.ru_stime
    finally:
        timer.cancel()


class _Run:
    def __init__(self, units, workers):
        self.budget_s = STAGE_TIMEOUT_S * workers
        self.changed = threading.Condition()
        self.order = itertools.count()
        self.waiting, self.active = [], 0
        self.rows = {unit.stage: Row(unit.stage) for unit in units}
        self.add(units)

    def add(self, units):
        for unit in units:
            heapq.heappush(self.waiting, (-unit.cost_s, next(self.order), unit))

    def next(self):
        """The unit to do now; None when there will be no other."""
        with self.changed:
            self.changed.wait_for(lambda: self.waiting or not self.active)
            if not self.waiting:
                return None
            self.active += 1
            return heapq.heappop(self.waiting)[2]

    def done(self, unit, result, seconds, more):
        with self.changed:
            row = self.rows[unit.stage]
            row.result += result
            row.seconds += seconds
            self.add(more)
            self.active -= 1
            self.changed.notify_all()
            print(f"{unit.stage}: {unit.name}: {result.passed} passed, {len(result.failed)} failed, {seconds:.1f} s",
                  *(f"\n== failed: {name}\n{text.strip()}" for name, text in result.failed), flush=True)

    def work(self):
        with Worker() as worker:
            while unit := self.next():
                start, more = time.monotonic(), []
                try:
                    left = self.budget_s - self.rows[unit.stage].seconds
                    result = unit.act(worker, min(STAGE_TIMEOUT_S, max(1, left)))
                    if isinstance(result, tuple):
                        result, more = result
                except Exception:  # Whatever breaks off is a failed test.
                    result = broken(unit.name, traceback.format_exc())
                seconds = time.monotonic() - start
                if not result.times and not more:
                    result.times.append((result.cpu_s, unit.name))
                self.done(unit, result, seconds, more)


def run(units, workers):
    """A row for each stage, in the order of `units`. No test at all is a failure."""
    state = _Run(units, workers)
    threads = [threading.Thread(target=state.work) for _ in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for row in state.rows.values():
        if row.result.passed + len(row.result.failed) == 0:
            row.result += broken("stage", "ended without a passed test")
    return list(state.rows.values())
