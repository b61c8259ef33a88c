#!/usr/bin/env python3
"""What a layer of the timed models costs in launches and bytes, counted in plans without a GPU.

    python3 test/Gpu/layers.py            the rows of runtime/device/cuda/README.md as plans are now
    python3 test/Gpu/layers.py --write    puts them there; the columns "before" stay

A layer is what a plan of three layers has more than one of two. MESHWORK_BIN names the compiler's folder.
"""
import collections
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import cases
import plans

README = plans.ROOT / "runtime" / "device" / "cuda" / "README.md"
# cases.TIMED has those that are timed; what is counted here is one microbatch of 8 sequences.
MODELS = {"gpt2-1.5b": "GPT-2 1.5B", "llama-1b": "Llama 1B"}
PRECISIONS = {"bf16": "bf16", "fp8": "FP8", "fp8-delayed": "FP8, delayed"}
# "once" runs before the first step.
LISTS = {"step": "step", "forward": "forward", "backward": "backward", "update": "step"}
BATCH = 8
MIB = 1 << 20

# `list` is the plan's; `kernel` is None where a library or several kernels do it; `line` is the whole of it.
Instruction = collections.namedtuple("Instruction", "list operation name kernel bytes line")


def memory_form(model, precision, layers):
    """The IR behind the last phase, which has each instruction with its traffic."""
    case = cases.TIMED[model]
    config = cases.config(plans.example(case["from"]), case["changes"])
    config["n_layer" if "n_layer" in config else "num_hidden_layers"] = layers
    spec = plans.sections({"dp": 1}, BATCH, BATCH, cases.SEQUENCE, "bf16", "cuda", "sm_90a",
                          precision=cases.PRECISIONS[precision])
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        (work / "config.json").write_text(json.dumps(config))
        (work / "spec.toml").write_text(plans.toml(spec))
        return subprocess.run([plans.BIN / "meshwork", "compile", work / "config.json", "--spec", work / "spec.toml",
                               "--compile-to=memory", "-o", "-"], check=True, capture_output=True, text=True).stdout


def instructions(text):
    """Those of all lists; what `meshwork explain` calls least traffic is `bytes`."""
    found, current = [], None
    for line in text.splitlines():
        if begun := re.match(r"    schedule\.list +(\w+) ", line):
            current = begun[1]
        elif done := re.match(r'      schedule\.(\w+) "([^"]*)".*? bytes (\d+)(?: +@(\w+))?', line):
            found.append(Instruction(current, done[1], done[2], done[4], int(done[3]), line))
    return found


def totals(text):
    """Instructions and bytes of each list."""
    sums = {name: [0, 0] for name in LISTS.values()}
    for one in instructions(text):
        if one.list in LISTS:
            sums[LISTS[one.list]][0] += 1
            sums[LISTS[one.list]][1] += one.bytes
    return sums


def layer(model, precision):
    """{list: (instructions, bytes)} of one layer."""
    two, three = (totals(memory_form(model, precision, layers)) for layers in (2, 3))
    return {name: (three[name][0] - two[name][0], three[name][1] - two[name][1]) for name in two}


def rows():
    """{(model and precision, list): (instructions, MiB)}, as the table has them."""
    found = {}
    for model, model_text in MODELS.items():
        for precision, precision_text in PRECISIONS.items():
            for name, (count, size) in layer(model, precision).items():
                found[f"{model_text}, {precision_text}", name] = (str(count), f"{size / MIB:.0f}")
    return found


ROW = re.compile(r"^\| ([^|]+) \| (forward|backward|step) \| ([^|]+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", re.M)


def written(text):
    """The columns "now" of the table, in the form of rows()."""
    return {(row[1], row[2]): (row[4], row[6]) for row in ROW.finditer(text)}


def refreshed(text, now):
    def line(row):
        count, size = now[row[1], row[2]]
        return f"| {row[1]} | {row[2]} | {row[3]} | {count} | {row[5]} | {size} |"
    return ROW.sub(line, text)


def main(arguments):
    if arguments not in ([], ["--write"]):
        print(__doc__, file=sys.stderr)
        return 64
    text = README.read_text()
    new = refreshed(text, rows())
    if arguments:
        README.write_text(new)
    else:
        print("\n".join(row[0] for row in ROW.finditer(new)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
