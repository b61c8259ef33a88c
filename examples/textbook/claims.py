"""What textbooks say of each strategy: a closed form, the same number of a plan, and how a run is measured. Numbers are
of one layer on one rank, in bytes, but where it says otherwise."""
import dataclasses
import typing

import measure

ZERO = "[ZeRO](https://arxiv.org/abs/1910.02054)"
ZERO_PP = "[ZeRO++](https://arxiv.org/abs/2306.10209)"
MEGATRON = "[Megatron](https://arxiv.org/abs/1909.08053)"
KORTHIKANTI = "[Korthikanti et al.](https://arxiv.org/abs/2205.05198)"
GPIPE = "[GPipe](https://arxiv.org/abs/1811.06965)"
INTERLEAVED = "[Megatron-2](https://arxiv.org/abs/2104.04473)"
ZERO_BUBBLE = "[zero bubble](https://arxiv.org/abs/2401.10241)"
LLAMA3 = "[Llama 3](https://arxiv.org/abs/2407.21783)"
GSHARD = "[GShard](https://arxiv.org/abs/2006.16668)"


@dataclasses.dataclass
class Claim:
    title: str
    source: str
    spec: str
    form: str
    closed: typing.Callable  # of a measure.Spec
    planned: typing.Callable
    measured: typing.Callable
    within: float = 0.05  # the part by which the measured value may differ from the planned one,
    more: float = 0  # and by how much it may be above it beside that
    model: str = "dense"
    as_text: str = "{:,.0f}"

    def numbers(self, spec):
        """(closed, planned, measured) of a measure.Spec; the last is None where the system cannot measure it."""
        return self.closed(spec), self.planned(spec), self.measured(spec)


# Of a layer of dense.json, whose width is h: matrices, norms (two weights, two biases), biases of products.
def parameters(s):
    return 12 * s.width ** 2 + 13 * s.width


def tokens(s):  # of a rank's microbatch
    return s.text["batch"]["micro"] * s.text["batch"]["sequence"]


def others(s):  # the part of what all have that comes from other ranks
    return (s.ranks - 1) / s.ranks


# Bytes that a process takes for the instructions of a layer, whatever the layer's width, at most.
OF_PROCESS = 600e3


def memory_of(*kinds):
    def query(told):
        return sum(told["memory_per_rank_bytes"][kind] for kind in kinds)
    return {"planned": lambda s: s.of_a_layer(query), "measured": lambda s: s.memory(query), "more": OF_PROCESS}


def sent(*kinds, beside=("update",)):
    """Of these kinds of collectives, but in these phases."""
    def query(told):
        return sum(c["bytes_sent_per_rank"] for c in told["collectives"]
                   if c["kind"] in kinds and c["phase"] not in beside)
    return {"planned": lambda s: s.of_a_layer(query), "measured": lambda s: s.traffic(query)}


STATES = memory_of("weights", "gradients", "optimizer")
KEPT = memory_of("activations")
BUBBLE = {"planned": lambda s: s.whole.told["bubble_fraction"], "measured": lambda s: s.bubble(), "within": 1e-9, "as_text": "{:.4f}"}


def imbalance(parts):
    return max(parts) / (sum(parts) / len(parts))


def blocks(s):
    return imbalance(s.whole.told["shared_attention"][0]["blocks_of_rank"])


def bubble(part):
    """Of the whole step, where the textbook counts it over the time of its work."""
    return lambda s: part(s.ranks, s.microbatches) / (1 + part(s.ranks, s.microbatches))


def gathered_8(s, backward):
    """A byte an element of matrices and four for each of their rows; the rest as it is, in the backward pass without
    biases."""
    return others(s) * (12 * s.width ** 2 + 4 * 18 * s.width + 2 * (2 if backward else 13) * s.width)


def sent_slots(s):
    """Rows that a rank has for each other one, in one round: of bound "worst", all of its tokens."""
    assert s.text["experts"]["bound"] == "worst", "with less room, how many rounds a run takes depends on its routers"
    return tokens(s)


def moved_tokens(s, rows):
    """To their experts and back, gradients likewise: four rows in 16 bits; numbers and weights of the choices, and the
    gradient of the weights."""
    return (s.ranks - 1) * rows * (4 * 2 * s.width + (8 + 4) * s.config["num_experts_per_tok"])


REDUCED = "reduce_scatter"
CLAIMS = [
    Claim("16 bytes a parameter", ZERO, "dp", "16 ψ", lambda s: 16 * parameters(s), **STATES, model="wide"),
    Claim("ZeRO-1", ZERO, "zero1", "4 ψ + 12 ψ / N", lambda s: (4 + 12 / s.ranks) * parameters(s), **STATES, model="wide"),
    Claim("ZeRO-2", ZERO, "zero2", "2 ψ + 14 ψ / N", lambda s: (2 + 14 / s.ranks) * parameters(s), **STATES, model="wide"),
    Claim("ZeRO-3", ZERO, "zero3", "16 ψ / N", lambda s: 16 / s.ranks * parameters(s), **STATES, model="wide"),
    Claim("gradients of data parallelism", ZERO, "dp", "2 (N-1)/N · 2 ψ", lambda s: 2 * others(s) * 2 * parameters(s),
          **sent("all_reduce", beside=()), model="wide"),
    Claim("traffic of ZeRO-1", ZERO, "zero1", "the same", lambda s: 2 * others(s) * 2 * parameters(s),
          **sent("all_gather", REDUCED, beside=()), model="wide"),
    Claim("traffic of ZeRO-2", ZERO, "zero2", "the same, + (N-1)/N · 26 h", lambda s: others(s) * (4 * parameters(s) + 26 * s.width),
          **sent("all_gather", REDUCED, beside=()), model="wide"),
    Claim("traffic of ZeRO-3", ZERO, "zero3", "3 (N-1)/N · 2 ψ, + (N-1)/N · 4 h",
          lambda s: others(s) * (6 * parameters(s) + 4 * s.width), **sent("all_gather", REDUCED, beside=()), model="wide"),
    Claim("hierarchical weights", ZERO_PP, "zero-hierarchy", "(No-1)/No · 2 ψ / Ni + 2 m (Ni-1)/Ni · 2 ψ, - m (Ni-1)/Ni · 22 h",
          lambda s: parameters(s) / 2 + s.microbatches * (2 * parameters(s) - 11 * s.width), **sent("all_gather"), model="wide"),
    Claim("weights in 8 bits", ZERO_PP, "zero-int8", "(N-1)/N · 2 (12 h² + 72 h), + (N-1)/N · 30 h",
          lambda s: gathered_8(s, False) + gathered_8(s, True), **sent("all_gather"), model="wide"),
    Claim("gradients in 4 bits", ZERO_PP, "zero-int4", "(N-1)/N · (6 h² + 84 h)",
          lambda s: others(s) * (6 * s.width ** 2 + 84 * s.width), **sent("all_to_all"), model="wide",
          within=0.12),  # that is 0.01 of all that the layer sends
    Claim("tensor parallelism", MEGATRON, "tp", "4 · 2 (N-1)/N · 2 bsh", lambda s: 4 * 2 * others(s) * 2 * tokens(s) * s.width,
          **sent("all_reduce")),
    Claim("sequence parallelism", KORTHIKANTI, "sp", "the same", lambda s: 4 * 2 * others(s) * 2 * tokens(s) * s.width,
          **sent("all_gather", REDUCED)),
    Claim("activations", KORTHIKANTI, "recompute-none", "bsh (34 - 2) + 4 bs (a + 4)",
          lambda s: tokens(s) * (32 * s.width + 4 * (s.config["n_head"] + 4)), **KEPT),
    Claim("selective recompute", KORTHIKANTI, "recompute-selective", "bsh (34 - 14) + 4 bs (a + 4)",
          lambda s: tokens(s) * (20 * s.width + 4 * (s.config["n_head"] + 4)), **KEPT),
    Claim("full recompute", KORTHIKANTI, "recompute-full", "2 bsh", lambda s: 2 * tokens(s) * s.width, **KEPT),
    Claim("GPipe", GPIPE, "gpipe", "(P-1) / m", bubble(lambda p, m: (p - 1) / m), **BUBBLE),
    Claim("1F1B", INTERLEAVED, "1f1b", "(P-1) / m", bubble(lambda p, m: (p - 1) / m), **BUBBLE),
    Claim("interleaved 1F1B, v = 2", INTERLEAVED, "interleaved-1f1b", "(P-1) / v m", bubble(lambda p, m: (p - 1) / (2 * m)), **BUBBLE),
    Claim("ZB-H1", ZERO_BUBBLE, "zb-h1", "(P-1) / 3 m", bubble(lambda p, m: (p - 1) / (3 * m)), **BUBBLE),
    Claim("blocks of a causal sequence", LLAMA3, "cp-block", "(4 N - 1) / (2 N + 1)", lambda s: (4 * s.ranks - 1) / (2 * s.ranks + 1),
          planned=blocks, measured=lambda s: imbalance(s.whole.attention()), within=0.25, as_text="{:.3f}"),
    Claim("zigzag", LLAMA3, "cp-zigzag", "1", lambda s: 1, planned=blocks, measured=lambda s: imbalance(s.whole.attention()),
          within=0.25, as_text="{:.3f}"),
    Claim("experts, tokens exchanged", GSHARD, "experts-exchanged", "(N-1) R (8 h + 12 k)",
          lambda s: moved_tokens(s, sent_slots(s)), **sent("all_to_all"), model="experts"),
    Claim("experts, tokens gathered", GSHARD, "experts-gathered", "the same, R = T",
          lambda s: moved_tokens(s, tokens(s)), **sent("all_gather", REDUCED), model="experts"),
]
