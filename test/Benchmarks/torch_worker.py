"""Trains one model with PyTorch, step by step on request, in one of its settings.

    python torch_worker.py gpt2-124m bf16 compile fused 2

Reads a number of steps a line from standard input; answers each with one JSON line,
{"step_ms": [...], "loss": the last}. The first line it writes says it is ready.
A process of its own, so that only one framework is ever busy, and so that what is
measured is a warm program, compiled once.
"""
import contextlib
import json
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "Equivalence"))

import torch

import cases
import kernels
import llama
import models
import rotary


class Trainer:
    def __init__(self, model, precision, mode, optimizer):
        self.config = cases.config(model)
        self.weights = models.random_weights(self.config, seed=0)
        with torch.no_grad():
            for weight in self.weights.values():
                if weight.dim() > 1:
                    weight.mul_(0.2)  # deviation 0.02, as trainings start
        decayed = [w for w in self.weights.values() if w.dim() > 1]
        others = [w for w in self.weights.values() if w.dim() <= 1]
        self.optimizer = torch.optim.AdamW(
            [{"params": decayed, "weight_decay": cases.WEIGHT_DECAY},
             {"params": others, "weight_decay": 0.0}],
            lr=cases.LEARNING_RATE, betas=cases.BETAS, eps=cases.EPSILON,
            fused=optimizer == "fused", foreach=optimizer == "foreach")
        self.autocast = precision == "bf16"
        self.extra = {}
        if self.config["model_type"] != "gpt2":
            dtype = torch.bfloat16 if self.autocast else torch.float32
            self.extra["positions"] = rotary.tables(
                self.config, llama._head_dim(self.config), cases.SEQUENCE, dtype)
        self.loss = self.forward
        if mode != "eager":
            torch._dynamo.config.cache_size_limit = 64
            self.loss = torch.compile(
                self.forward, mode=None if mode == "compile" else mode)

    def forward(self, tokens, targets):
        fast = kernels.Fast()
        logits = models.family(self.config).logits(
            self.config, self.weights, tokens, fast, models.no_drop, **self.extra)
        return fast.cross_entropy(logits, targets)

    def step(self):
        vocabulary = self.config["vocab_size"]
        window = torch.randint(vocabulary, (cases.BATCH, cases.SEQUENCE + 1))
        start = time.perf_counter()
        guard = (torch.autocast("cpu", torch.bfloat16) if self.autocast
                 else contextlib.nullcontext())
        with guard:
            loss = self.loss(window[:, :-1].contiguous(), window[:, 1:].contiguous())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(list(self.weights.values()), cases.CLIP)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        value = loss.item()
        return (time.perf_counter() - start) * 1e3, value


def main():
    model, precision, mode, optimizer, threads = sys.argv[1:]
    torch.set_num_threads(int(threads))
    torch.manual_seed(0)
    trainer = Trainer(model, precision, mode, optimizer)
    begin = time.perf_counter()
    for _ in range(3):
        trainer.step()
    print(json.dumps({"ready": True, "torch": torch.__version__,
                      "warmup_s": time.perf_counter() - begin}), flush=True)
    for line in sys.stdin:
        steps = [trainer.step() for _ in range(int(line))]
        print(json.dumps({"step_ms": [ms for ms, _ in steps], "loss": steps[-1][1]}),
              flush=True)


if __name__ == "__main__":
    main()
