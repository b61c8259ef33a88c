"""Tables of where a step's time goes, from the launcher's profile and the rates of PyTorch's libraries.

A table is a list of rows of which the first has the names; None is what is not known."""
import json
import re

import cases

# Instructions that move bytes and compute next to nothing.
MEMORY_BOUND = ("Launch", "Embedding", "EmbeddingGrad", "CopyBlock", "Fill", "TopK", "Pick", "PickGrad", "SortRows",
                "TakeRows", "CombineRows", "AssignSlots", "LimitChoices")
WORTH_MS = 0.02
SLOW_SHARE = 0.85


class Group:
    """Instructions that differ in their layer alone, as far as a profile tells."""

    def __init__(self, first, key):
        self.name, self.phase, self.operation = re.sub(r"\d+", "*", first["name"]), first["phase"], first["operation"]
        self.shape = {**first[key], "gradient": first["operation"].endswith("Grad")} if key else None
        self.calls = self.ms = self.flops = self.bytes = 0.0

    def add(self, row):
        self.calls += row["calls_per_step"]
        self.ms += row["ms_per_step"]
        self.flops += row["calls_per_step"] * row["flops"]
        self.bytes += row["calls_per_step"] * row["bytes"]

    @property
    def ms_a_call(self):
        return self.ms / self.calls if self.calls else 0

    @property
    def tflops(self):
        return self.flops / self.ms / 1e9 if self.ms else None

    @property
    def gbytes(self):
        return self.bytes / self.ms / 1e6 if self.ms else None


def groups(profile, key=None, operations=None):
    """In the order of their time. With `key`, those that have such a shape."""
    made = {}
    for row in profile:
        if (key and key not in row) or (operations and row["operation"] not in operations):
            continue
        kind = (re.sub(r"\d+", "*", row["name"]), row["phase"], row["operation"],
                json.dumps(row[key]) if key else row["bytes"])
        made.setdefault(kind, Group(row, key)).add(row)
    return sorted(made.values(), key=lambda group: -group.ms)


def where_time_goes(busy_ms, step_ms, flops, measured_mfu, gpu):
    """A line and numbers: the gap between instructions, mfu by both peaks."""
    told, parts = {}, [f"instructions {busy_ms:.2f} ms"]
    if step_ms:
        told["gap"] = 1 - busy_ms / step_ms
        parts.append(f"gaps {100 * told['gap']:.1f} % of the step (its time less theirs, which were timed one by one)")
    nominal = cases.nominal_tflops("bf16", gpu)
    if step_ms and flops:
        tflops = told["tflops"] = flops / step_ms / 1e9
        parts.append(f"{tflops:.1f} TFLOP/s")
        if nominal:
            told.update(nominal_peak_tflops=nominal, mfu_nominal=tflops / nominal)
            parts.append(f"{100 * tflops / nominal:.1f} % of the nominal bf16 peak ({nominal} TFLOP/s)")
        if measured_mfu:
            told.update(measured_peak_tflops=tflops / measured_mfu, mfu_measured=measured_mfu)
            parts.append(f"{100 * measured_mfu:.1f} % of the measured one ({tflops / measured_mfu:.1f})")
    return ", ".join(parts), told


def by_operation(profile):
    table = {}
    for row in profile:
        ms, calls = table.get(row["operation"], (0, 0))
        table[row["operation"]] = ms + row["ms_per_step"], calls + row["calls_per_step"]
    return [["operation", "ms", "calls"], *([name, *both] for name, both in
                                            sorted(table.items(), key=lambda item: -item[1][0]))]


def layout(shape):
    """As BLAS says it: which operands are transposed in memory."""
    letters = "".join("T" if shape[f"{side}_transposed"] else "N" for side in ("lhs", "rhs"))
    return letters + (" to T" if shape["dst_transposed"] else "")


def of(rates, key, index):
    """All that was told of one shape, in one object; kernels' names come after times."""
    merged = {}
    for line in rates:
        if line.get(key) == index and "backend" not in line:
            merged.update(line)
    return merged


def size_of(group):
    return tuple(group.shape[x] for x in ("batch", "m", "n", "k")) + (group.name.split(" ")[0], group.phase)


def filled(table):
    """Without the columns in which nothing is known."""
    keep = [i for i in range(len(table[0])) if any(row[i] is not None for row in table[1:])]
    return [[row[i] for i in keep] for row in table]


def products(profile, apart, rates):
    plain_ones = {size_of(group): group for group in groups(apart, "product")}
    table = [["product", "phase", "calls", "batch", "m", "n", "k", "layout", "types", "epilogue", "ms", "TFLOP/s",
              "plain ms", "plain TFLOP/s", "of plain", "apart ms", "kernel of plain"]]
    for index, group in enumerate(groups(profile, "product")):
        shape, rate = group.shape, of(rates, "product", index)
        flops = 2 * shape["batch"] * shape["m"] * shape["n"] * shape["k"]
        plain = rate.get("ms")
        other = plain_ones.get(size_of(group))
        epilogue = "+".join(x for x in (shape["epilogue"], "bias" if shape["bias"] else "") if x not in ("", "none"))
        table.append([group.name, group.phase, group.calls, shape["batch"], shape["m"], shape["n"], shape["k"],
                      layout(shape), "x".join((shape["lhs"], shape["rhs"])) + ">" + shape["dst"], epilogue,
                      group.ms_a_call, group.tflops, plain, flops / plain / 1e9 if plain else None,
                      plain / group.ms_a_call if plain and group.ms else None, other and other.ms_a_call,
                      rate.get("kernel") or rate.get("why") or rate.get("note")])
    return filled(table)


def attention(profile, ways, rates):
    """`profile` as the launcher chose; of each way the instructions when it was asked for."""
    by_way = {way: {(group.operation, group.phase): group for group in groups(x, "attention")}
              for way, x in ways.items()}
    table = [["operation", "phase", "calls", "batch", "rows", "heads", "kv_heads", "head_dim", "ms", "TFLOP/s",
              *(f"ours by {way}" for way in by_way), "PyTorch cuDNN", "PyTorch flash"]]
    for index, group in enumerate(groups(profile, "attention")):
        shape = group.shape
        ours = [x.get((group.operation, group.phase)) for x in by_way.values()]
        part = "backward_ms" if shape["gradient"] else "forward_ms"
        times = {x["backend"]: x.get(part) for x in rates if x.get("attention") == index and "backend" in x}
        flops = group.flops / group.calls if group.calls else 0
        table.append([group.operation, group.phase, group.calls, shape["batch"], shape["queries"], shape["heads"],
                      shape["kv_heads"], shape["head_dim"], group.ms_a_call, group.tflops,
                      *(x and x.tflops for x in ours),
                      *(flops / times[x] / 1e9 if times.get(x) else None for x in ("cudnn", "flash"))])
    return filled(table)


def memory_bound(profile, copy_gbytes):
    """The table, and (share of a copy's rate, ms, name) of those that are slow."""
    rows, slow = [], []
    for group in groups(profile, operations=MEMORY_BOUND):
        share = group.gbytes / copy_gbytes if copy_gbytes and group.gbytes else None
        lost = group.ms * (1 - share) if share is not None else None
        rows.append([group.name, group.operation, group.phase, group.calls, group.ms, group.gbytes, share, lost])
        if share is not None and share < SLOW_SHARE and group.ms > WORTH_MS:
            slow.append((share, group.ms, group.name))
    rows.sort(key=lambda row: -(row[4] if row[7] is None else row[7]))
    names = ["instruction", "operation", "phase", "calls", "ms", "GB/s", "of a copy", "ms above a copy"]
    return filled([names, *rows]), sorted(slow)
