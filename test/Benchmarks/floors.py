"""Where our time goes, instruction by instruction, against what the machine allows."""
import re
import tomllib

# An instruction's floor is the larger of flops over the matmul peak and bytes over the copy rate. Each
# rate is the best of both sides: on some processors one library's f32 product is half as fast as the
# other's. A fused kernel (Launch) computes in f32 whatever it stores: its peak is that of f32. Layers
# are added up: "h.7.mlp.c_fc" counts as "h.*.mlp.c_fc".
_LAYER = re.compile(r"(?<=\.)\d+(?=\.)|(?<=\.)\d+$")


def rates(machine):
    """Of a machine file: what our products and kernels reach, as machine.py says it of PyTorch's."""
    told = tomllib.loads(machine)
    return {"f32": told["flops"]["f32"] / 1e9, "bf16": told["flops"]["bf16"] / 1e9,
            "copy": max(told["memory"]["bandwidth"], told["memory"]["kernels"]) / 1e9}


def best(sides):
    """The largest rate that any side reaches: a floor below which somebody goes is none."""
    sides = list(sides)
    return {key: max(side[key] for side in sides) for key in sides[0]}


def table(rows, peak_gflops, f32_gflops, copy_gbytes):
    """Rows of the profile -> groups with ms, floor_ms and ratio, slowest first."""
    groups = {}
    for row in rows:
        key = (_LAYER.sub("*", row["name"]), row["operation"])
        group = groups.setdefault(key, {"name": key[0], "operation": key[1], "calls": 0.0,
                                        "ms": 0.0, "floor_ms": 0.0})
        peak = f32_gflops if row["operation"] == "Launch" else peak_gflops
        compute_ms = row["flops"] / peak / 1e6
        memory_ms = row["bytes"] / copy_gbytes / 1e6
        group["calls"] += row["calls_per_step"]
        group["ms"] += row["ms_per_step"]
        group["floor_ms"] += row["calls_per_step"] * max(compute_ms, memory_ms)
    for group in groups.values():
        group["ratio"] = group["ms"] / group["floor_ms"] if group["floor_ms"] else None
    return sorted(groups.values(), key=lambda g: -g["ms"])


def text(groups, rows=25):
    total = sum(g["ms"] for g in groups)
    lines = [f"{'ms/step':>9} {'share':>6} {'calls':>6} {'floor':>8} {'times':>6}  "
             f"{'operation':<13} instruction"]
    for g in groups[:rows]:
        ratio = f"{g['ratio']:6.2f}" if g["ratio"] else "     -"
        lines.append(f"{g['ms']:9.2f} {g['ms'] / total:6.1%} {g['calls']:6.0f} "
                     f"{g['floor_ms']:8.2f} {ratio}  {g['operation']:<13} {g['name']}")
    rest = groups[rows:]
    if rest:
        ms, floor = sum(g["ms"] for g in rest), sum(g["floor_ms"] for g in rest)
        lines.append(f"{ms:9.2f} {ms / total:6.1%} {'':6} {floor:8.2f} {'':6}  "
                     f"and {len(rest)} more")
    lines.append(f"{total:9.2f} ms of instructions, floor "
                 f"{sum(g['floor_ms'] for g in groups):.2f} ms")
    return "\n".join(lines)
