"""One model's training step with PyTorch on a GPU, as fast as a user would have it:

    python torch_step.py config.json BATCH SEQUENCE [cpu]   ->   a JSON object a line

f32 weights made on the device, bf16 autocast, attention by cuDNN or flash attention (the faster one,
found by trying), fused AdamW, clipping: what the plans do. A line as soon as a way to run it is
timed: eager; compiled layer by layer, which takes half a minute whatever the depth; compiled as a
whole, which may take minutes; that with CUDA graphs. Whoever asks takes the best of those that came.
A batch that does not fit the memory is summed over the fewest microbatches of one size that do, as the
eager step finds.
The architectures are those of the equivalence tests. "cpu" is for tests.
"""
import contextlib
import json
import math
import statistics
import sys
import time

import torch

import cases
import kernels
import llama
import models
import rotary

DEVICE = "cpu" if sys.argv[4:] == ["cpu"] else "cuda"
STEPS, WARM = (10, 3) if DEVICE == "cuda" else (2, 1)


def synchronize():
    if DEVICE == "cuda":
        torch.cuda.synchronize()


class Strongest(kernels.Fast if hasattr(torch.nn.functional, "rms_norm") else kernels.Reference):
    """Key heads are not repeated in memory where PyTorch can read them in place."""

    def attention(self, q, k, v, scale, window, drop):
        if window or not hasattr(torch.nn, "attention"):
            return super().attention(q, k, v, scale, window, drop)
        return torch.nn.functional.scaled_dot_product_attention(
            q, k, v, is_causal=True, scale=scale, enable_gqa=q.shape[1] != k.shape[1])


def use(cudnn):
    """For the whole process, so that compiled code has it too."""
    torch.backends.cuda.enable_cudnn_sdp(cudnn)
    torch.backends.cuda.enable_flash_sdp(not cudnn)
    torch.backends.cuda.enable_mem_efficient_sdp(False)
    torch.backends.cuda.enable_math_sdp(False)


def attention_ms(config, batch, sequence):
    """Forward and backward, of one layer."""
    heads = config.get("n_head") or config["num_attention_heads"]
    kv_heads = config.get("num_key_value_heads") or heads
    depth = config.get("head_dim") or (config.get("n_embd") or config["hidden_size"]) // heads
    q, k, v = (torch.randn(batch, sequence, n, depth, device=DEVICE, dtype=torch.bfloat16).transpose(1, 2)
               .requires_grad_() for n in (heads, kv_heads, kv_heads))
    grad = torch.randn_like(q)

    def run():
        out = Strongest().attention(q, k, v, depth ** -0.5, 0, None)
        torch.autograd.grad(out, (q, k, v), grad)

    run()
    synchronize()
    start = time.perf_counter()
    for _ in range(10):
        run()
    synchronize()
    return (time.perf_counter() - start) * 100


def choose_attention(config, batch, sequence):
    """Name of the faster library, which is then the one in use."""
    if DEVICE == "cpu":
        return "plain", {}
    times = {}
    for name in ("cudnn", "flash"):
        use(name == "cudnn")
        try:
            times[name] = attention_ms(config, batch, sequence)
        except RuntimeError:  # it has no kernel for this shape
            times[name] = math.inf
    best = min(times, key=times.get)
    use(best == "cudnn")
    if times[best] == math.inf:
        torch.backends.cuda.enable_math_sdp(True)
        return "neither", {}
    return best, {name: ms for name, ms in times.items() if ms < math.inf}


def made_weights(config):
    """On the device: a large model's take half a minute elsewhere."""
    generator = torch.Generator(device=DEVICE).manual_seed(0)
    weights = {}
    for name, shape in models.parameter_shapes(config).items():
        noise = 0.02 * torch.randn(shape, generator=generator, device=DEVICE)
        is_scale = len(shape) == 1 and not name.endswith("bias")
        weights[name] = (noise + 1 if is_scale else noise).requires_grad_()
    return weights


class Step:
    def __init__(self, config, batch, sequence):
        self.config, self.batch, self.sequence = config, batch, sequence
        self.micro = batch
        self.weights = made_weights(config)
        groups = [{"params": [w for w in self.weights.values() if (w.dim() > 1) == many],
                   "weight_decay": cases.OPTIMIZER["weight_decay"] if many else 0.0}
                  for many in (True, False)]
        fused = {"fused": True} if DEVICE == "cuda" else {}
        self.optimizer = torch.optim.AdamW(groups, lr=cases.LEARNING_RATE, betas=(0.9, 0.95), **fused)
        self.extra = {}
        if config["model_type"] != "gpt2":
            tables = rotary.tables(config, llama._head_dim(config), sequence, torch.bfloat16)
            self.extra["positions"] = tuple(t.to(DEVICE) for t in tables)
        self.family, self.fast = models.family(config), Strongest()
        self.loss, self.cross_entropy = self.forward, self.fast.cross_entropy

    def forward(self, tokens, targets):
        logits = self.family.logits(self.config, self.weights, tokens, self.fast, models.no_drop, **self.extra)
        return self.cross_entropy(logits, targets)

    def of_layers(self):
        """Weights of each layer, under the names of the first one."""
        count = self.config.get("n_layer") or self.config["num_hidden_layers"]
        first = self.family.layer_name(0)
        names = [self.family.layer_name(layer) for layer in range(count)]
        return [{first + name[len(begin):]: w for name, w in self.weights.items() if name.startswith(begin)}
                for begin in names]

    def run(self):
        """Milliseconds and the loss."""
        window = torch.randint(250, (self.batch, self.sequence + 1), device=DEVICE)
        synchronize()
        start = time.perf_counter()
        loss = sum(self.gradients(part) for part in window.split(self.micro))
        torch.nn.utils.clip_grad_norm_(list(self.weights.values()), cases.OPTIMIZER["clip_grad_norm"])
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        value = loss.item()
        synchronize()
        return (time.perf_counter() - start) * 1e3, value

    def gradients(self, window):
        """Those of a microbatch are added; its part of the loss."""
        with torch.autocast(DEVICE, torch.bfloat16):
            loss = self.loss(window[:, :-1].contiguous(), window[:, 1:].contiguous()) * (len(window) / self.batch)
        loss.backward()
        return loss.detach()

    def fit(self):
        """Takes the largest microbatch with which a step fits the memory."""
        for count in range(1, self.batch + 1):
            if self.batch % count == 0 and self.fits(self.batch // count):
                return

    def fits(self, micro):
        self.micro = micro
        try:
            self.run()
            return True
        except torch.cuda.OutOfMemoryError:
            pass  # it holds what the step had; that goes with it
        free(self)
        return False


def free(step):
    step.optimizer.zero_grad(set_to_none=True)
    if DEVICE == "cuda":
        torch.cuda.empty_cache()


def compiled(function, **options):
    """Tests without a compiler run it as it is."""
    return torch.compile(function, **options) if hasattr(torch, "compile") or DEVICE == "cuda" else function


def eager(_step):
    pass


def by_layer(step):
    """All layers are calls of one function, which is compiled once."""
    layers, block = step.of_layers(), compiled(step.family.block)
    step.family.block = lambda config, _weights, layer, *rest: block(config, layers[layer], 0, *rest)
    step.cross_entropy = compiled(step.fast.cross_entropy)


def whole(step):
    step.loss = compiled(step.forward)


def with_graphs(step):
    step.loss = compiled(step.forward, mode="reduce-overhead")


WAYS = {"eager": eager, "compiled by layer": by_layer, "compiled": whole, "CUDA graphs": with_graphs}


@contextlib.contextmanager
def prepared(step, prepare):
    """The step run this way; as it was, and without what the way took, behind."""
    before = step.loss, step.cross_entropy, step.family.block
    try:
        prepare(step)
        yield
    finally:
        step.loss, step.cross_entropy, step.family.block = before
        if hasattr(torch, "_dynamo"):
            torch._dynamo.reset()
        free(step)


def time_way(step, way):
    """The line of one way to run the step."""
    begin = time.perf_counter()
    for _ in range(WARM):
        step.run()
    warm_s = time.perf_counter() - begin
    times, losses = zip(*(step.run() for _ in range(STEPS)))
    memory = torch.cuda.max_memory_allocated() / 2 ** 30 if DEVICE == "cuda" else 0
    return {"way": way, "micro": step.micro, "step_ms": statistics.median(times), "steps_ms": times, "loss": losses[-1],
            "ready_s": warm_s, "memory_gib": memory, "torch": torch.__version__}


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        config = json.load(file)
    batch, sequence = int(sys.argv[2]), int(sys.argv[3])
    attention, times = choose_attention(config, batch, sequence)
    step = Step(config, batch, sequence)
    step.fit()
    for way, prepare in WAYS.items():
        try:
            with prepared(step, prepare):
                line = time_way(step, way)
        except Exception as error:  # the others may run
            line = {"way": way, "why": f"{type(error).__name__}: {error}"[:400]}
        print(json.dumps({**line, "attention": attention, "attention_ms": times}), flush=True)


if __name__ == "__main__":
    main()
