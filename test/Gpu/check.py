"""Confirms a build on one NVIDIA GPU:

    python3 check.py [--out FOLDER] [--seconds N] [STAGE...]

kernels        every instruction of real shapes against the CPU, from the same inputs
wgmma          attention's kernels for compute capability 9.0: many shapes against double precision
copies         a state in the host's memory, fetched and put back beside the update: the same bits;
               repeats that run as often as the GPU has counted
ranks          tiny models on 1, 2 and 4 ranks of the GPU against the CPU: loss, gradients, weights
machine        what --measure-machine finds of the GPU, beside a shipped machine's figures
attention      attention alone by each way and by PyTorch's libraries, over head dims and lengths
speed:MODEL    a whole step, and where its time goes; `speed`: of all models
pytorch:MODEL  the same step by PyTorch, beside ours; `pytorch`: of all models
sanitizer      memcheck and racecheck of Meshwork's kernels, where compute-sanitizer is installed

Without STAGE all of them, the decisive ones first. Each stage ends within its own limit, at most
eight minutes, so they may also be run one by one: the results of stages that ran before stay.
Prints what it finds and writes gpu-check.json and gpu-check.txt after every row.
Exit code 1 when anything is wrong; being slow is not, and neither is what was not run, which is
called so.
"""
import argparse
import json
import math
import pathlib
import sys
import tempfile
import time

import agreement
import attention
import cases
import compared
import launcher
import libraries
import machine
import process
import rivals
import sanitized
import speeds
from report import Report
from stages import Stage, run_stage

HERE = pathlib.Path(__file__).resolve().parent


def all_stages(gpu, small):
    timed = {f"speed:{name}": Stage(480, speeds.speed(name, gpu, small)) for name in cases.TIMED}
    beside = {f"pytorch:{name}": Stage(480, rivals.rival(name, gpu, small)) for name in rivals.names()}
    return {"kernels": Stage(470, compared.kernels, 150), "wgmma": Stage(400, compared.wgmma, 120),
            "copies": Stage(110, compared.copies, 60),
            "ranks": Stage(400, agreement.ranks, 60), "machine": Stage(160, machine.machine(gpu)), "attention": Stage(300, attention.attention(gpu, small), 60),
            **timed, **beside,
            "sanitizer": Stage(470, sanitized.sanitizer, 200)}


def chosen(asked, names):
    """Stages in the order of `names`; "speed" is all that begin so."""
    unknown = [x for x in asked if x not in names and not any(y.startswith(x + ":") for y in names)]
    if unknown:
        raise ValueError(f"there is no stage {unknown[0]}: {', '.join(names)}, or speed, or pytorch, for all of these")
    return [x for x in names if not asked or x in asked or x.split(":")[0] in asked]


def about_machine():
    gpu = libraries.output_of("nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader")
    bundle = json.loads((HERE / "bundle.json").read_text())
    return {"gpu": gpu.strip() or "unknown", "date": time.strftime("%Y-%m-%d %H:%M:%S"), "bundle": bundle["bundle"],
            "small": bundle["small"], "libraries": libraries.looked_up(), "sanitizer": sanitized.tool()}


def launcher_starts(report):
    """It needs a C library, and a C++ one, no older than bundle.py says."""
    done = process.call([*launcher.RUN, "--help"], limit_s=60)
    good = done.returncode == 0
    report.add("launcher", good, "starts" if good else done.stderr.strip()[-600:] or f"exit {done.returncode}")
    return good


def begin(report):
    report.stage = "setup"
    print(f"GPU: {report.about['gpu']}", flush=True)
    for row in report.about["libraries"]:
        report.add("library", None, libraries.text(row))
    return launcher_starts(report)


def options_of(parser):
    parser.add_argument("stages", nargs="*", metavar="STAGE")
    parser.add_argument("--out", type=pathlib.Path, default=HERE / "out", help="for the two files (%(default)s)")
    parser.add_argument("--seconds", type=float, default=math.inf, help="for all stages together; default: no limit "
                        "but that of each stage")
    parser.add_argument("--stage-seconds", type=float, default=math.inf, help="for each stage, if less than its limit")
    parser.add_argument("--case-seconds", type=float, default=math.inf, help="for each case of a stage, likewise")
    return parser.parse_args()


def shorter(stage, options):
    return Stage(min(stage.limit_s, options.stage_seconds), stage.cases,
                 min(stage.case_limit_s or stage.limit_s, options.case_seconds))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options = options_of(parser)
    about = about_machine()
    stages = all_stages(about["gpu"], about["small"])
    try:
        names = chosen(options.stages, list(stages))
    except ValueError as error:
        parser.error(str(error))
    options.out.mkdir(parents=True, exist_ok=True)
    report = Report(options.out, about, ["setup", *names])
    with tempfile.TemporaryDirectory(prefix="gpu-check-") as folder:
        libraries.ENVIRONMENT.setdefault("MESHWORK_CACHE_DIR", folder)  # choices of --tune-matmuls
        if begin(report):
            for name in names:
                run_stage(name, shorter(stages[name], options), report, pathlib.Path(folder),
                          report.start + options.seconds)
    print(f"{report.summary()}, {report.seconds()} s: {report.text}")
    sys.exit(report.failed)


if __name__ == "__main__":
    main()
