"""One model's training step with PyTorch on a GPU, and what the GPU can do at most:

    python torch_step.py config.json 8   ->   {"step_ms", "copy_gbytes", "matmul_tflops", ...}

bf16 autocast over f32 weights, compiled, flash attention, fused AdamW, clipping: what the
plans do. The architectures are those of the equivalence tests.
"""
import json
import statistics
import sys
import time

import torch

import cases
import kernels
import llama
import models
import rotary

STEPS, WARM = 10, 4


def best_ms(run, tries=10):
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    times = []
    for _ in range(tries):
        begin.record()
        run()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return min(times)


def copy_gbytes():
    a = torch.ones(1 << 28, device="cuda")
    b = torch.empty_like(a)
    return 2 * a.nbytes / best_ms(lambda: b.copy_(a)) / 1e6


def matmul_tflops():
    a, b = (torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    return 2 * 8192 ** 3 / best_ms(lambda: torch.mm(a, b)) / 1e9


class Step:
    def __init__(self, config, batch):
        self.config, self.batch = config, batch
        self.weights = {n: (0.2 * w if w.dim() > 1 else w).detach().cuda().requires_grad_()
                        for n, w in models.random_weights(config, seed=0).items()}
        groups = [{"params": [w for w in self.weights.values() if (w.dim() > 1) == many],
                   "weight_decay": cases.OPTIMIZER["weight_decay"] if many else 0.0}
                  for many in (True, False)]
        self.optimizer = torch.optim.AdamW(groups, lr=cases.LEARNING_RATE, betas=(0.9, 0.95), fused=True)
        self.extra = {}
        if config["model_type"] != "gpt2":
            tables = rotary.tables(config, llama._head_dim(config), cases.SEQUENCE, torch.bfloat16)
            self.extra["positions"] = tuple(t.cuda() for t in tables)
        self.loss = torch.compile(self.forward)

    def forward(self, tokens, targets):
        fast = kernels.Fast()
        logits = models.family(self.config).logits(self.config, self.weights, tokens, fast,
                                                   models.no_drop, **self.extra)
        return fast.cross_entropy(logits, targets)

    def run(self):
        window = torch.randint(250, (self.batch, cases.SEQUENCE + 1), device="cuda")
        torch.cuda.synchronize()
        start = time.perf_counter()
        with torch.autocast("cuda", torch.bfloat16):
            loss = self.loss(window[:, :-1].contiguous(), window[:, 1:].contiguous())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(list(self.weights.values()), cases.OPTIMIZER["clip_grad_norm"])
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        loss.item()
        torch.cuda.synchronize()
        return (time.perf_counter() - start) * 1e3


def main():
    with open(sys.argv[1]) as file:
        config = json.load(file)
    peaks = {"copy_gbytes": copy_gbytes(), "matmul_tflops": matmul_tflops()}
    torch.cuda.empty_cache()
    step = Step(config, int(sys.argv[2]))
    for _ in range(WARM):
        step.run()
    times = [step.run() for _ in range(STEPS)]
    print(json.dumps({"step_ms": statistics.median(times), "steps_ms": times, "torch": torch.__version__,
                      "memory_gib": torch.cuda.max_memory_allocated() / 2 ** 30, **peaks}))


if __name__ == "__main__":
    main()
