"""What is measured: examples/gpt2-124m.json and examples/llama-30m.json without dropout
(so that frameworks draw no random numbers), 4 sequences of 512 tokens a step."""
import argparse
import json
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODELS = ("gpt2-124m", "llama-30m")
PRECISIONS = ("f32", "bf16")
BATCH, SEQUENCE = 4, 512
LEARNING_RATE, BETAS, EPSILON = 3e-4, (0.9, 0.95), 1e-8
WEIGHT_DECAY, CLIP = 0.1, 1.0
# Step time of PyTorch over ours that the project asks for.
GOALS = {"f32": 1.2, "bf16": 1.5}
COMPILE_GOAL_S, LOAD_GOAL_MS, FLOOR_GOAL = 3.0, 50.0, 1.3


def path(text):
    """Of an argument: scripts run tools from other folders."""
    return pathlib.Path(text).resolve()


def add_bin(parser):
    parser.add_argument("--bin", type=path, default=os.environ.get("MESHWORK_BIN", str(ROOT / "build" / "bin")),
                        help="folder of our tools")


def arguments(about):
    """What the scripts take that compare a part of a step with PyTorch's."""
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--torch-python", default=sys.executable)
    add_bin(parser)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--output", help="a file for the figures as JSON")
    return parser.parse_args()


def config(model):
    """The parsed configuration of `model`."""
    text = (ROOT / "examples" / f"{model}.json").read_text()
    return {key: 0.0 if key.endswith(("pdrop", "dropout")) else value
            for key, value in json.loads(text).items()}


def spec(precision):
    return (f'[mesh]\naxes = ["dp=1"]\n[batch]\nglobal = {BATCH}\nmicro = {BATCH}\n'
            f'sequence = {SEQUENCE}\n[precision]\ncompute = "{precision}"\n')
