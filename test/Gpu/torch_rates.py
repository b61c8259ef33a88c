"""What PyTorch's libraries reach on the shapes of a plan, and what this GPU can do at most:

    python torch_rates.py shapes.json [cpu]    ->   a JSON object a line, as soon as it is known

shapes.json: {"products": [...], "attention": [...]}, members of the launcher's --profile-json.
Lines: {"copy_gbytes"}, {"matmul_tflops"}, {"product": index, "ms", "note"},
{"attention": index, "backend", "forward_ms", "backward_ms"}, {"product": index, "kernel"}; one that
did not work has "why" instead. Times are of cold runs, between which other memory is written: in a
step too, an operand comes from elsewhere. "cpu" is for tests.
"""
import json
import statistics
import sys
import time

import torch

DEVICE = "cpu" if sys.argv[2:] == ["cpu"] else "cuda"
TYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "e4m3": getattr(torch, "float8_e4m3fn", None),
         "e5m2": getattr(torch, "float8_e5m2", None)}
RUNS, WARM = 10, 3
COLD_BYTES = 512 << 20 if DEVICE == "cuda" else 1 << 10  # more than a cache holds, and work while the host prepares


def tell(**members):
    print(json.dumps(members), flush=True)


def median_ms(run, cold=None):
    """Of RUNS runs, each by itself; the time of the GPU alone."""
    times = []
    for i in range(WARM + RUNS):
        if cold is not None:
            cold.zero_()
        if DEVICE == "cpu":
            start = time.perf_counter()
            run()
            ms = (time.perf_counter() - start) * 1e3
        else:
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            run()
            end.record()
            end.synchronize()
            ms = begin.elapsed_time(end)
        if i >= WARM:
            times.append(ms)
    return statistics.median(times)


def peaks(cold):
    elements, size = (1 << 28, 8192) if DEVICE == "cuda" else (1 << 10, 64)
    a = torch.ones(elements, device=DEVICE)
    b = torch.empty_like(a)
    tell(copy_gbytes=2 * 4 * elements / median_ms(lambda: b.copy_(a)) / 1e6)
    del a, b
    x, y = (torch.randn(size, size, device=DEVICE).to(torch.bfloat16) for _ in range(2))
    tell(matmul_tflops=2 * size ** 3 / median_ms(lambda: torch.mm(x, y), cold) / 1e9)


def operand(batch, rows, columns, type_name, transposed):
    """Random, [batch, rows, columns]; transposed in memory where the plan's is."""
    made = torch.randn((batch, columns, rows) if transposed else (batch, rows, columns), device=DEVICE)
    made = made.to(TYPES[type_name])
    made = made.transpose(1, 2) if transposed else made
    return made[0] if batch == 1 else made


def product_of(shape):
    """A call without bias and epilogue, and what about it is not the plan's."""
    batch, m, n, k = (shape[x] for x in ("batch", "m", "n", "k"))
    a = operand(batch, m, k, shape["lhs"], shape["lhs_transposed"])
    b = operand(batch, k, n, shape["rhs"], shape["rhs_transposed"])
    if shape["dst_transposed"]:  # PyTorch writes dense rows: those of the transposed product
        a, b = b.transpose(-1, -2), a.transpose(-1, -2)
    out = TYPES[shape["dst"]]
    if shape["lhs"].startswith("e"):
        one = torch.ones((), device=DEVICE)
        b = b.t().contiguous().t()  # its kernels take columns on the right alone
        a = a.contiguous()
        fast = shape["lhs"] == shape["rhs"] == "e4m3"  # as the launcher adds up
        return (lambda: torch._scaled_mm(a, b, scale_a=one, scale_b=one, out_dtype=out, use_fast_accum=fast)), ""
    if out is not a.dtype and DEVICE == "cuda" and batch == 1:
        try:
            torch.mm(a, b, out_dtype=out)
            return (lambda: torch.mm(a, b, out_dtype=out)), ""
        except (TypeError, RuntimeError):
            pass
    note = "" if out is a.dtype else f"result in {a.dtype}".replace("torch.", "")
    return (lambda: torch.mm(a, b)) if batch == 1 else (lambda: torch.bmm(a, b)), note


def time_products(shapes, cold):
    for index, shape in enumerate(shapes):
        try:
            run, note = product_of(shape)
            tell(product=index, ms=median_ms(run, cold), note=note)
        except Exception as error:  # the others have times of their own
            tell(product=index, why=f"{type(error).__name__}: {error}"[:300])


def backends():
    """Name and a context that has attention run by it."""
    if DEVICE == "cpu":
        import contextlib
        return {"plain": contextlib.nullcontext}
    from torch.nn.attention import SDPBackend, sdpa_kernel
    return {"cudnn": lambda: sdpa_kernel(SDPBackend.CUDNN_ATTENTION),
            "flash": lambda: sdpa_kernel(SDPBackend.FLASH_ATTENTION)}


def time_attention(index, shape, backend, context, cold):
    def heads(count, rows):  # [batch, rows, heads, d] in memory, as projections leave it
        made = torch.randn(shape["batch"], rows, count, shape["head_dim"], device=DEVICE).to(TYPES[shape["type"]])
        return made.transpose(1, 2).requires_grad_()

    q = heads(shape["heads"], shape["queries"])
    k, v = (heads(shape["kv_heads"], shape["keys"]) for _ in range(2))
    more = {"enable_gqa": True} if shape["heads"] != shape["kv_heads"] else {}
    attend = getattr(torch.nn.functional, "scaled_dot_product_attention")
    with context():
        def forward():
            return attend(q, k, v, is_causal=shape["causal"], **more)
        out = forward()
        grad = torch.randn_like(out)
        times = {"forward_ms": median_ms(forward, cold),
                 "backward_ms": median_ms(lambda: torch.autograd.grad(out, (q, k, v), grad, retain_graph=True), cold)}
    tell(attention=index, backend=backend, **times)


def time_all_attention(shapes, cold):
    for index, shape in enumerate(shapes):
        for backend, context in backends().items():
            try:
                time_attention(index, shape, backend, context, cold)
            except Exception as error:
                tell(attention=index, backend=backend, why=f"{type(error).__name__}: {error}"[:300])


def kernel_names(run):
    """Kernels of a call, the longest first."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        run()
        torch.cuda.synchronize()
    spent = {}
    for event in profile.events():
        if str(event.device_type).endswith("CUDA"):
            spent[event.name] = spent.get(event.name, 0) + event.time_range.elapsed_us()
    return sorted(spent, key=spent.get, reverse=True)


def name_products(shapes):
    for index, shape in enumerate(shapes):
        try:
            names = kernel_names(product_of(shape)[0])
            tell(product=index, kernel=names[0] if names else None)
        except Exception as error:
            tell(product=index, kernel=None, why=f"{type(error).__name__}: {error}"[:300])


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        shapes = json.load(file)
    cold = torch.empty(COLD_BYTES, dtype=torch.uint8, device=DEVICE)
    peaks(cold)
    time_products(shapes["products"], cold)
    time_all_attention(shapes["attention"], cold)
    if DEVICE == "cuda":
        name_products(shapes["products"])


if __name__ == "__main__":
    main()
