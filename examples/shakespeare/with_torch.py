"""PyTorch's side of run.py: Transformers' class on the windows that the launcher reads, with the same update.

    PYTHON with_torch.py FOLDER --steps 5000 --every 250 --threads 1

Writes FOLDER/pytorch.jsonl, in the words of --metrics. Goes on from FOLDER/pytorch.pt after a stop. With `--until N` it
stops after so many steps. With `--time N` it makes N steps, writes FOLDER/speed-pytorch.jsonl and keeps nothing.
"""
import argparse
import json
import os
import pathlib
import sys
import time
import tomllib

import numpy as np
import torch
from transformers import AutoModelForCausalLM

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "test" / "Equivalence"))

import adamw
import philox

from run import FLOOR, HELD_OUT, RATE, WARMUP

BATCH, SEQUENCE = (tomllib.loads((HERE / "spec.toml").read_text())["batch"][key] for key in ("global", "sequence"))
SEED = 0


class Windows:
    """Those of `--order epochs --held-out`: the last ones are evaluated."""

    def __init__(self, folder):
        self.ids = np.fromfile(folder / "text.bin", "<u2").astype(np.int64)
        count = (len(self.ids) - 1) // SEQUENCE
        self.trained = count - int(count * HELD_OUT)
        self.count = count

    def rows(self, starts):
        rows = torch.from_numpy(np.stack([self.ids[start:start + SEQUENCE + 1] for start in starts]))
        return rows[:, :-1], rows[:, 1:]

    def step(self, step):
        read = [[self.trained * SEQUENCE + 1]]
        return self.rows([philox.window(read, SEQUENCE, SEED, step, i, step * BATCH + i, "epochs")[1] for i in range(BATCH)])

    def held_out(self):
        places = [place * SEQUENCE for place in range(self.trained, self.count)]
        for first in range(0, len(places), BATCH):
            yield self.rows(places[first:first + BATCH])


class Trainer:
    def __init__(self, folder, steps, attention):
        self.model = AutoModelForCausalLM.from_pretrained(folder / "initial", dtype=torch.float32, attn_implementation=attention)
        self.weights, self.steps, self.windows = list(self.model.parameters()), steps, Windows(folder)
        groups = [{"params": [w for w in self.weights if (w.dim() > 1) == matrix], "weight_decay": decay}
                  for matrix, decay in ((True, 0.1), (False, 0.0))]
        self.optimizer = torch.optim.AdamW(groups, lr=RATE, betas=(0.9, 0.95), eps=1e-8, fused=True)

    def loss(self, tokens, targets, reduction="mean"):
        logits = self.model(input_ids=tokens, use_cache=False).logits
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction=reduction)

    def step(self, step):
        """(loss, milliseconds), the windows read before."""
        for group in self.optimizer.param_groups:
            group["lr"] = adamw.warmup_cosine(step, RATE, WARMUP, self.steps, FLOOR)
        rows = self.windows.step(step)
        begin = time.perf_counter()
        loss = self.loss(*rows)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.weights, 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return loss.item(), (time.perf_counter() - begin) * 1e3

    @torch.no_grad()
    def evaluate(self):
        found = [(self.loss(tokens, targets, "sum").item(), targets.numel()) for tokens, targets in self.windows.held_out()]
        losses, counts = zip(*found)
        return sum(losses) / sum(counts), sum(counts)

    def save(self, path, step):
        torch.save((step, self.model.state_dict(), self.optimizer.state_dict()), f"{path}.new")
        os.replace(f"{path}.new", path)

    def load(self, path):
        step, weights, state = torch.load(path)
        self.model.load_state_dict(weights)
        self.optimizer.load_state_dict(state)
        return step


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    for name in ("steps", "every", "threads", "time", "until"):
        parser.add_argument(f"--{name}", type=int)
    parser.add_argument("--name", default="pytorch", help="of the files that are written")
    parser.add_argument("--attention", default="sdpa", help="another one rounds in another way")
    return parser.parse_args()


def kept_lines(path, first):
    """Those of a log whose steps are not made again."""
    lines = path.read_text().splitlines() if first else []
    return [line + "\n" for line in lines if json.loads(line)["step"] < first]


def main():
    options = arguments()
    torch.set_num_threads(options.threads)
    trainer, folder = Trainer(options.folder, options.steps, options.attention), options.folder
    saved, first = folder / f"{options.name}.pt", 0
    if saved.exists() and not options.time:
        first = trainer.load(saved)
    log = folder / ("speed-pytorch.jsonl" if options.time else f"{options.name}.jsonl")
    kept = kept_lines(log, first)
    with open(log, "w", buffering=1) as out:
        out.writelines(kept)
        for step in range(first, options.time or options.until or options.steps):
            loss, step_ms = trainer.step(step)
            out.write(json.dumps({"step": step, "loss": loss, "step_ms": step_ms}) + "\n")
            if options.time or (step + 1) % options.every and step + 1 < options.steps:
                continue
            loss, targets = trainer.evaluate()
            out.write(json.dumps({"step": step, "eval_loss": loss, "eval_targets": targets}) + "\n")
            print(f"step {step}: held out {loss:.4f}", flush=True)
            trainer.save(saved, step + 1)


if __name__ == "__main__":
    main()
