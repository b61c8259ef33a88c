#!/usr/bin/env python3
"""Trains one model with Meshwork and with PyTorch, on the same windows of a text and from the same initial values:

    examples/shakespeare/run.py TEXT.txt -o FOLDER --python PYTHON

PYTHON has torch, transformers, tokenizers and numpy. What is done stays in FOLDER, and the same command goes on after a
stop. `--only STAGE` does one thing: prepare; meshwork, pytorch (these may run side by side); again, the first steps of PyTorch
with attention that rounds in another way; speed, both in turns; report, which writes losses.json and loss.svg beside this
script, unless --report names another folder; or text, words of the model that is exported.
"""
import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tomllib

import picture

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
RATE, FLOOR, WARMUP, HELD_OUT = 1e-3, 1e-4, 200, 0.05
# glibc gives large blocks back to the system at each free; PyTorch is faster when it does not.
TORCH_ENVIRONMENT = {"MALLOC_MMAP_THRESHOLD_": str(1 << 32), "MALLOC_TRIM_THRESHOLD_": str(1 << 40), "MALLOC_TOP_PAD_": "0"}
STAGES = ("prepare", "meshwork", "pytorch", "again", "speed", "report", "text")
AGAIN = 250  # steps


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("text", type=pathlib.Path)
    parser.add_argument("-o", dest="folder", type=pathlib.Path, required=True)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--bin", type=pathlib.Path, default=os.environ.get("MESHWORK_BIN", ROOT / "build" / "bin"))
    parser.add_argument("--steps", type=int, default=5000)
    parser.add_argument("--every", type=int, default=250, help="steps from one evaluation to the next")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", choices=STAGES)
    parser.add_argument("--report", type=pathlib.Path, default=HERE)
    options = parser.parse_args()
    options.folder, options.bin = options.folder.resolve(), options.bin.resolve()
    return options


def call(options, tool, *words, **more):
    environment = {**os.environ, "MESHWORK_PYTHON": options.python}
    return subprocess.run([options.bin / tool, *map(str, words)], check=True, env=environment, text=True, **more)


def prepare(options):
    """The model before the first step, the tokens, and the plan."""
    model = options.folder / "initial"
    if not (model / "model.safetensors").exists():
        subprocess.run([options.python, HERE / "initial.py", options.text, model], check=True)
    call(options, "meshwork", "tokenize", model / "tokenizer.json", options.text, "-o", options.folder / "text.bin")
    call(options, "meshwork", "compile", model, "--spec", HERE / "spec.toml", "-o", plan(options))


def plan(options):
    return options.folder / "model.mwplan"


def meshwork(options):
    run = options.folder / "run"
    call(options, "meshwork-run", plan(options), *training(options, options.steps), "--init", options.folder / "initial",
         "--held-out", HELD_OUT, "--eval-every", options.every, "--metrics", options.folder / "meshwork.jsonl",
         "--checkpoint", run, "--checkpoint-every", options.every, "--keep-best", "--resume", "auto")


def training(options, steps):
    """What stays the same whether it is trained or timed."""
    return ["--data", options.folder / "text.bin", "--order", "epochs", "--steps", steps, "--lr", RATE, "--schedule", "cosine",
            "--min-lr", FLOOR, "--warmup-steps", WARMUP, "--threads", options.threads, "--no-pin"]


def pytorch(options, *more):
    subprocess.run([options.python, HERE / "with_torch.py", options.folder, "--steps", str(options.steps), "--every",
                    str(options.every), "--threads", str(options.threads), *more], check=True,
                   env={**os.environ, **TORCH_ENVIRONMENT})


def again(options):
    """How far PyTorch gets from itself, by rounding alone."""
    pytorch(options, "--attention", "eager", "--name", "again", "--until", str(min(AGAIN, options.steps)))


def text(options):
    trained = options.folder / "trained"
    if not trained.exists():
        call(options, "meshwork", "checkpoint", "export", options.folder / "run", "-o", trained)
    tokenizer = options.folder / "initial" / "tokenizer.json"
    subprocess.run([options.python, HERE / "generate.py", trained, tokenizer, "ROMEO:"], check=True)


def speed(options, rounds=3, few=5, many=30):
    """Tokens in a second of processor time, by turns; what else the machine does changes that least."""
    def ours(steps):
        call(options, "meshwork-run", plan(options), *training(options, steps), stdout=subprocess.DEVNULL)

    def theirs(steps):
        pytorch(options, "--time", str(steps))

    tokens = math.prod(tomllib.loads((HERE / "spec.toml").read_text())["batch"][key] for key in ("global", "sequence"))
    found = {"meshwork": [], "pytorch": []}
    for _ in range(rounds):
        for name, steps_of in (("meshwork", ours), ("pytorch", theirs)):
            found[name].append((processor_s(steps_of, many) - processor_s(steps_of, few)) / (many - few))
    rates = {name: round(tokens / statistics.median(each)) for name, each in found.items()}
    (options.folder / "speed.json").write_text(json.dumps(rates))
    print("tokens/s:", *(f"{name} {rate}" for name, rate in rates.items()))


def processor_s(run, steps):
    """Of the process that makes so many steps."""
    before = os.times()
    run(steps)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def curves(options):
    """Of each program: losses of training and of evaluation, by the number of steps before them."""
    found = {}
    for name in ("meshwork", "pytorch", "again"):
        if not (options.folder / f"{name}.jsonl").exists():
            continue
        told = lines(options.folder / f"{name}.jsonl")
        found[name] = {"loss": {line["step"]: line["loss"] for line in told if "loss" in line},
                       "held_out": {line["step"] + 1: line["eval_loss"] for line in told if "eval_loss" in line}}
    return found


def compared(ours, theirs):
    """The step of the largest difference, and the mean of all."""
    differences = {step: ours[step] - theirs[step] for step in sorted(ours.keys() & theirs.keys())}
    worst = max(differences, key=lambda step: abs(differences[step]))
    return differences, {"largest": round(abs(differences[worst]), 6), "step": worst,
                         "mean": round(statistics.mean(differences.values()), 6)}


def until(one, steps):
    """What both programs have."""
    return {kind: {step: loss for step, loss in losses.items() if step <= steps - (kind == "loss")} for kind, losses in one.items()}


def by_tens(values, chosen):
    tens = {}
    for step, value in sorted(values.items()):
        tens.setdefault(step // 10 * 10, []).append(value)
    return [[step, round(chosen(group), 5)] for step, group in tens.items()]


def report(options):
    """Keeps the mean of each ten losses of training, all of evaluation, and where both differ most."""
    found = curves(options)
    control, ours, theirs = found.pop("again", None), found["meshwork"], found["pytorch"]
    each, training_told = compared(ours["loss"], theirs["loss"])
    found = {name: until(one, len(each)) for name, one in found.items()}
    of = f"first {len(each)} of {options.steps}" if len(each) < options.steps else f"{options.steps}"
    kept = {"title": f"A Llama of 11.4 million parameters in f32, from the same values and windows: {of} steps"}
    for name, one in found.items():
        kept[name] = {"loss": by_tens(one["loss"], statistics.mean),
                      "held_out": [[step, round(loss, 5)] for step, loss in sorted(one["held_out"].items())]}
    kept |= {"difference": by_tens(each, lambda group: max(group, key=abs)),
             "training": training_told, "held_out": compared(ours["held_out"], theirs["held_out"])[1]}
    if control:
        kept["pytorch_again"] = {kind: compared(control[kind], theirs[kind])[1] for kind in ("loss", "held_out")}
        kept["meshwork_so_far"] = {kind: compared({step: loss for step, loss in ours[kind].items() if step <= max(control[kind])},
                                                  theirs[kind])[1] for kind in ("loss", "held_out")}
    speeds = options.folder / "speed.json"
    kept["tokens_per_s"] = json.loads(speeds.read_text()) if speeds.exists() else None
    (options.report / "losses.json").write_text(json.dumps(kept).replace(', "', ',\n"') + "\n")
    (options.report / "loss.svg").write_text(picture.drawn(kept))
    print(json.dumps({name: told for name, told in kept.items() if name not in ("meshwork", "pytorch", "difference")}, indent=1))


def main():
    options = arguments()
    for stage in [options.only] if options.only else STAGES:
        globals()[stage](options)


if __name__ == "__main__":
    main()
