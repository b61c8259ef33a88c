"""Stages of the check: what each runs, and how long it may take.

A stage is a list of cases. A case adds rows to the report; one that breaks, or does not end in
time, leaves the others their results. NotRun says that something was not run: it did not fail.
"""
import dataclasses
import time
import typing

import process


@dataclasses.dataclass
class Case:
    what: str
    run: typing.Callable  # (report, folder for files)


@dataclasses.dataclass
class Stage:
    limit_s: float
    cases: typing.Callable  # () -> list of Case, the decisive ones first
    case_limit_s: float = 0  # 0: the stage's


def run_case(case, report, folder):
    try:
        case.run(report, folder)
    except process.NotRun as why:
        report.not_run(case.what, str(why))
    except Exception as error:  # the other cases have results of their own
        report.add(case.what, False, f"{type(error).__name__}: {error}")


def run_stage(name, stage, report, folder, latest):
    """Ends by its own limit, or by `latest` if that comes first."""
    report.stage = name
    end = min(latest, time.monotonic() + stage.limit_s)
    for case in stage.cases():
        process.Clock.deadline = min(end, time.monotonic() + (stage.case_limit_s or stage.limit_s))
        run_case(case, report, folder)
