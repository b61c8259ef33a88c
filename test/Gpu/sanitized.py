"""Stage `sanitizer`: memcheck and racecheck of a training step, of Meshwork's kernels alone.

Those of cuBLASLt, cuDNN and NCCL are not ours to judge, and following each of their accesses is
what takes the time."""
import functools
import os
import shutil

import cases
import compared
import launcher
import libraries
import process
from stages import Case

# Kernels that a plan carries (kernel_7, merged_0, attention_bf16_64_0, ...) and the launcher's own.
OUR_KERNELS = ("^((kernel|merged|embedding|embedding_grad|copy_block|fill|top_k|attention[a-z0-9_]*|pick|pick_grad|"
               "count_choices|begin_rows|place_rows|count_turns|add_turns|keep_choices|assign_slots|combine_rows|grouped_product|grouped_gradient)_[0-9]+|"
               "moveBoxes|finishProduct|addUp|emptyKernel|wgmma(Forward|RowSums|KeyGrad|QueryGrad)(64|128))$")
# Older tools take parts of names alone. In other kernels' names they are rare.
OUR_PARTS = ("kernel_", "merged_", "embedding_", "attention_", "copy_block_", "fill_", "top_k_", "pick_", "count_choices_", "begin_rows_",
             "place_rows_", "count_turns_", "add_turns_", "keep_choices_", "assign_slots_", "combine_rows_", "grouped_", "moveBoxes",
             "finishProduct", "addUp", "emptyKernel", "wgmma")

WGMMA = [launcher.HERE / "wgmma-test", "--gtest_filter=*OneTile:*WideHeads:*HopsOfARing:*Documents"]


def tool():
    patterns = [("/usr/local", "cuda*/bin"), ("/usr/local", "cuda*/compute-sanitizer")]
    patterns += [(path, f"nvidia/*/{folder}") for path in libraries.PACKAGES for folder in ("bin", "compute-sanitizer")]
    places = libraries.found(patterns)
    return shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path=os.pathsep.join(places))


@functools.lru_cache(maxsize=None)
def kernel_filter(path):
    """Options that have the tool look at our kernels: --kernel-name, which was --kernel-regex before it
    took patterns."""
    if "--kernel-name" in process.call([path, "--help"], limit_s=60).stdout:
        return ["--kernel-name", f"regex={OUR_KERNELS}"]
    return [x for part in OUR_PARTS for x in ("--kernel-regex", f"kns={part}")]


def sanitizer():
    made = [Case(f"{check} {name}", functools.partial(look, check, name, step_of(name)))
            for name in cases.SANITIZED for check in ("memcheck", "racecheck")]
    # Its copies are the hardware's, which racecheck does not follow.
    return made + [Case("memcheck wgmma", functools.partial(look, "memcheck", "wgmma", WGMMA))]


def step_of(name):
    return [*launcher.RUN, launcher.plan(name), *launcher.DATA, "--steps", 1, "--share-gpu"]


def look(check, name, command, report, _folder):
    path = tool()
    if not path:
        raise process.NotRun("no compute-sanitizer")
    options = ["--tool", check, "--error-exitcode", 9, *kernel_filter(path)]
    done = process.ended([path, *options, *command], limit_s=200)
    lines = (done.stdout + done.stderr).splitlines()
    summary = [x.strip("= ") for x in lines if "SUMMARY" in x]
    refused = [x.strip("= ") for x in lines if "not supported" in x or "Internal Sanitizer Error" in x]
    unfit = [x for x in lines if compared.UNFIT in x]
    if unfit or (refused and not summary):
        raise process.NotRun((unfit + refused)[0])
    found = [x.strip("= ") for x in lines if x.startswith("=========") and x.strip("= ")]
    report.add(f"{check} {name}", done.returncode == 0, "; ".join(summary) or done.stderr[-300:],
               lines=[] if done.returncode == 0 else found[:40], filter=options[4:])
