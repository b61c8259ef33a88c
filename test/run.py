#!/usr/bin/env python3
"""Runs every kind of test and adds them up; `./dev test` calls it after the build.

    test/run.py [quick] [STAGE...]     all of: format ctest lit endtoend equivalence asan

Stages run side by side. `quick` leaves out asan, and what other tests of the stages call slow.
The last line is "N passed, M failed", with ", K skipped" when tests were; above it stands
again what the failed ones printed. A stage that breaks off, or finds no test at all, counts
as a failure. Exit code 0 only without any.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from runner import pool, stages

SHOWN = 6000  # Characters of a failed test that stand again at the end.
SLOWEST = 10  # Tests that are listed with what they take.


def main(names):
    quick = "quick" in names
    names = [name for name in names if name != "quick"]
    unknown = [name for name in names if name not in stages.STAGES]
    if unknown:
        print(f"unknown stage {unknown[0]!r}, expected {' '.join(stages.STAGES)}, or quick", file=sys.stderr)
        return 64
    names = names or (stages.QUICK if quick else stages.STAGES)
    units = [unit for name in names for unit in stages.STAGES[name](quick)]
    return show(pool.run(units, stages.WORKERS))


def show(rows):
    """The slowest tests, what failed, a line for each stage, and the sum. The exit code."""
    total = pool.Result()
    for row in rows:
        total += row.result
    print("\nslowest tests")
    for seconds, name in sorted(map(tuple, total.times), reverse=True)[:SLOWEST]:
        print(f"{seconds:7.1f} s  {name}")
    for row in rows:
        for name, text in row.result.failed:
            print(f"\n== failed in {row.stage}: {name}\n{text.strip()[-SHOWN:]}")
    print()
    for row in rows:
        print(f"{row.stage:12} {row.result.passed:5} passed {len(row.result.failed):4} failed "
              f"{row.result.skipped:4} skipped {row.seconds:7.0f} s {row.result.cpu_s:7.0f} s of processor")
    print(f"{total.passed} passed, {len(total.failed)} failed"
          + (f", {total.skipped} skipped" if total.skipped else ""))
    return 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
