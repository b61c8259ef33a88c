"""The launcher and the plans that are carried, and how a run is asked for."""
import json
import pathlib
import re

import process

HERE = pathlib.Path(__file__).resolve().parent
RUN = [str(HERE / "meshwork-run")]
DATA = ["--data", str(HERE / "tokens.u16"), "--data-type", "u16"]
UNAVAILABLE = 69  # exit code: this machine lacks something
# What a run says at its end of libraries that did not run everything, and why.
NOTES = re.compile(r"^\w+ ran \d+ of \d+ .*\n(?:  .*\n)*", re.MULTILINE)


class Unavailable(RuntimeError):
    """This machine lacks what a run needs."""


def plan(name):
    return HERE / "plans" / f"{name}.mwplan"


def train(name, *options, steps=1, limit_s=240):
    """The finished launcher; NotRun where it did not end."""
    if not plan(name).exists():
        raise process.NotRun(f"this bundle has no plan {name}")
    return process.ended([*RUN, plan(name), *DATA, "--steps", steps, *options], limit_s=limit_s)


def evaluation(name, folder, *options, limit_s=240):
    """What an evaluation of initial weights says: its line of the metrics."""
    path = folder / f"{name}-evaluation.jsonl"
    path.unlink(missing_ok=True)
    done = process.ended([*RUN, plan(name), "--evaluate", "--eval-data", DATA[1], *DATA[2:], "--eval-steps", "2", "--metrics",
                          path, *options], limit_s=limit_s)
    if done.returncode != 0:
        raise (Unavailable if done.returncode == UNAVAILABLE else RuntimeError)(message(done))
    return json.loads(path.read_text())


def message(done):
    """What a launcher that failed said."""
    return f"exit {done.returncode}: {done.stderr.strip()[-600:]}"


def notes(done):
    """Lines that say which library ran what."""
    return "".join(NOTES.findall(done.stdout)).splitlines()


def metrics(name, folder, *options, steps):
    """Lines of the metrics of a run, and its notes."""
    path = folder / f"{name}.jsonl"
    path.unlink(missing_ok=True)  # a log grows
    done = train(name, "--metrics", path, *options, steps=steps)
    if done.returncode != 0:
        raise (Unavailable if done.returncode == UNAVAILABLE else RuntimeError)(message(done))
    return [json.loads(line) for line in path.read_text().splitlines()], notes(done)
