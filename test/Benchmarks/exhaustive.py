#!/usr/bin/env python3
"""`meshwork tune` against a loop over `meshwork compile --estimate`, on whole spaces.

    test/Benchmarks/exhaustive.py [--only dense] [--jobs 2]

The loop knows nothing of the search: it writes each spec, compiles it, and takes the fastest of those that fit the memory.
Both must name the same step to the digit, and have as many specs. No step may be below the bound that the search tells.
With twelve layers a space of some 100 specs takes two or three minutes of one core.
"""
import argparse
import collections
import concurrent.futures
import itertools
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import cases
import searches

Spec = collections.namedtuple("Spec", "pp dp fsdp ep cp tp micro sp method layout exchange stage gathered reduce schedule virtual "
                              "recompute states")
SIZES = {"num_hidden_layers": 12, "hidden_size": 2048, "num_attention_heads": 16, "num_key_value_heads": 8,
         "intermediate_size": 5632, "max_position_embeddings": 4096}
LLAMA = {**json.loads((cases.ROOT / "examples" / "llama-30m.json").read_text()), **SIZES}
EXPERTS = {**json.loads((cases.ROOT / "examples" / "mixtral-tiny.json").read_text()), **SIZES}
MEMORY = "expect.memory_per_rank"

NONE, SELECTIVE = ({"recompute.policy": f'"{policy}"'} for policy in ("none", "selective"))
ON_DEVICE = {"offload.optimizer": "false"}

# Model, ranks, sequences, what --axis and --fixed say, and bytes a second of the link to the host, where they are not the
# machine's own. Part of the specs does not fit the memory.
SPACES = {
    "zero": (LLAMA, 8, 16, {"pp": 1, "cp": 1}, {**SELECTIVE, **ON_DEVICE, MEMORY: '"6 GB"'}),
    "schedules": (LLAMA, 8, 16, {"cp": 1, "tp": 1}, {**SELECTIVE, **ON_DEVICE, "zero.stage": "1", MEMORY: '"7 GB"'}),
    "recompute": (LLAMA, 8, 8, {"cp": 1, "tp": 2, "pp": 2}, {**ON_DEVICE, "zero.stage": "1", MEMORY: '"4 GB"'}),
    "gathered": (LLAMA, 8, 16, {"pp": 2, "cp": 1, "tp": 1}, {**NONE, **ON_DEVICE, "zero.stage": "3", MEMORY: '"8 GB"'}),
    "context": (LLAMA, 8, 8, {"pp": 1, "tp": 1}, {**ON_DEVICE, "zero.stage": "1", MEMORY: '"6 GB"'}),
    "experts": (EXPERTS, 8, 16, {"pp": 1, "cp": 1, "tp": 1}, {**ON_DEVICE, MEMORY: '"12 GB"'}),
    "states": (LLAMA, 4, 8, {"pp": 1, "cp": 1, "tp": 1}, {MEMORY: '"3 GB"'}),
    "stages": (LLAMA, 4, 32, {"pp": 4}, {**SELECTIVE, MEMORY: '"4.5 GB"'}),
    "pairs": (LLAMA, 4, 8, {"pp": 2, "cp": 1, "tp": 1}, {"zero.stage": "1", MEMORY: '"4 GB"'}),
    "copies": (LLAMA, 32, 64, {"pp": 1, "cp": 1, "tp": 2}, {**SELECTIVE, **ON_DEVICE, MEMORY: '"5 GB"'}),
    "kept": (LLAMA, 4, 8, {"pp": 1, "cp": 1, "tp": 1}, {MEMORY: '"4 GB"'}, 450e9),
}
SEQUENCE = 4096
NODE = 8  # ranks
REFUSED = (65, 78)  # exit codes: the model cannot be so, or the spec


def divisors(number):
    return [one for one in range(1, number + 1) if number % one == 0]


class Space:
    """All specs, as the README of tune says: what is refused is among them."""

    def __init__(self, model, ranks, batch, axes, fixed, host=None):
        self.model, self.ranks, self.batch, self.axes, self.fixed, self.host = model, ranks, batch, axes, fixed, host

    def words(self, key, words):
        return [json.loads(self.fixed[key])] if key in self.fixed else words

    def meshes(self):
        experts = "num_local_experts" in self.model
        for pp, ep, cp, tp in itertools.product(divisors(self.ranks), repeat=4):
            mesh = {"pp": pp, "ep": ep, "cp": cp, "tp": tp}
            if self.ranks % (pp * ep * cp * tp) == 0 and (ep == 1 or experts) and all(mesh[a] == s for a, s in self.axes.items()):
                dp = self.ranks // (pp * ep * cp * tp)
                for fsdp in self.parts(dp, ep * cp * tp) if self.can_be(pp, dp * ep) else [1]:
                    yield pp, dp // fsdp, fsdp, ep, cp, tp

    def can_be(self, pp, data_parallel):
        return pp <= self.model["num_hidden_layers"] and self.batch % data_parallel == 0

    @staticmethod
    def parts(dp, inside):
        """Over how many ranks ZeRO splits, but for all: those of so many nodes."""
        sizes = [nodes * NODE // inside for nodes in (1, 2, 4, 8, 16) if nodes * NODE % inside == 0]
        return [1, *(size for size in sizes if 1 < size < dp and dp % size == 0)]

    def zeros(self, fsdp, copies, single):
        stages = [0, 1, 2, 3][fsdp > 1:] if copies > 1 else [0]
        for stage in self.words("zero.stage", stages):
            for gathered in self.words("zero.gathered", ["free", "keep"]) if stage == 3 else [None]:
                ways = ["microbatch"] if stage == 2 else ["microbatch", "step"]
                for reduce in self.words("zero.reduce", ways) if stage > 1 and not single else [None]:
                    yield stage, gathered, reduce

    def schedules(self, pp):
        names = ["1f1b", "interleaved-1f1b", "zb-h1", "zb-h2", "zb-v", "dualpipe-v"]
        for name in self.words("pipeline.schedule", names) if pp > 1 else [None]:
            for virtual in self.virtual_stages(pp) if name == "interleaved-1f1b" else [None]:
                yield name, virtual

    def virtual_stages(self, pp):
        layers = self.model["num_hidden_layers"]
        if layers % pp == 0:
            return [2, *(virtual for virtual in range(3, layers // pp + 1) if layers % (pp * virtual) == 0)]
        return [2 ** power for power in range(1, 20) if power == 1 or pp * 2 ** power <= layers]

    def specs(self):
        for mesh in self.meshes():
            pp, dp, fsdp, ep = mesh[:4]
            yield from itertools.islice(self.specs_of(*mesh), None if self.can_be(pp, dp * fsdp * ep) else 1)

    def specs_of(self, pp, dp, fsdp, ep, cp, tp):
        parallel = dp * fsdp * ep
        for micro in divisors(self.batch // parallel) if self.batch % parallel == 0 else [1]:
            sequences = [False] if tp == 1 or "shard.residual_sequence" in self.fixed else [True, False]
            contexts = itertools.product(["gathered", "ulysses", "ring"], ["block", "zigzag"]) if cp > 1 else [(None, None)]
            exchanges = ["gathered", "all_to_all"] if ep > 1 else [None]
            for sp, context, exchange, zero, schedule, recompute, states in itertools.product(
                    sequences, list(contexts), exchanges, list(self.zeros(fsdp, dp * fsdp * cp, parallel * micro == self.batch)),
                    list(self.schedules(pp)), self.words("recompute.policy", ["none", "selective", "offload", "full"]),
                    self.words("offload.optimizer", [False, True])):
                yield Spec(pp, dp, fsdp, ep, cp, tp, micro, sp, *context, exchange, *zero, *schedule, recompute, states)

    def settings(self, spec):
        axes = [f"{axis}={size}" for axis, size in zip(("pp", "dp", "fsdp", "ep", "cp", "tp"), spec) if size > 1]
        parts = [("fsdp", spec.fsdp)] if spec.fsdp > 1 else [("dp", spec.dp)]
        split = [axis for axis, size in (*parts, ("cp", spec.cp)) if size > 1]
        said = {"mesh.axes": axes, "batch.micro": spec.micro, "context.method": spec.method, "context.layout": spec.layout,
                "experts.exchange": spec.exchange, "zero.stage": spec.stage, "zero.gathered": spec.gathered, "zero.reduce": spec.reduce,
                "zero.axes": split if spec.stage and spec.cp > 1 else None, "pipeline.schedule": spec.schedule,
                "pipeline.virtual_stages": spec.virtual, "recompute.policy": spec.recompute,
                "shard.residual_sequence": ["tp"] if spec.sp else None, "offload.optimizer": True if spec.states else None}
        own = {key: json.dumps(value) for key, value in said.items() if value is not None}
        return {**own, **self.fixed}


class Bench:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.program = options.bin / "meshwork"

    def write(self, space):
        """The model, and the machine: h100x8, or a file with its figures but for the link to the host."""
        (self.folder / "model.json").write_text(json.dumps(space.model))
        self.machine = "h100x8"
        if space.host:
            text = (cases.ROOT / "examples" / "machines" / "h100x8.toml").read_text()
            self.machine = str(self.folder / "machine.toml")
            pathlib.Path(self.machine).write_text(re.sub(r"\nhost = \S+", f"\nhost = {space.host}", text, count=1))

    def estimate(self, space, number, spec):
        """Milliseconds and bytes; None where no spec may say it."""
        path = self.folder / f"{number}.toml"
        path.write_text("")
        sets = [f"{key}={value}" for key, value in space.settings(spec).items()]
        sets += [f"batch.global={space.batch}", f"batch.sequence={SEQUENCE}", 'target.device="cuda"',
                 f"target.machine={json.dumps(self.machine)}"]
        done = subprocess.run([self.program, "compile", self.folder / "model.json", "--spec", path, "--estimate", "--json",
                               *(word for one in sets for word in ("--set", one))], capture_output=True, text=True)
        if done.returncode in REFUSED:
            return None
        if done.returncode != 0:
            raise RuntimeError(f"{spec}: exit code {done.returncode}: {done.stderr}")
        told = json.loads(done.stdout)
        return told["estimate"]["step_ms"], told["memory_per_rank_bytes"]["peak"]

    def loop(self, space, specs):
        with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as pool:
            return list(pool.map(lambda pair: self.estimate(space, *pair), enumerate(specs)))

    def tune(self, space):
        words = [*searches.axes(space.axes), *searches.fixed(space.fixed), "--offload", "always"]
        batch = {"global": space.batch, "sequence": SEQUENCE}
        found = searches.best_of(self.options.bin, self.folder / "model.json", space.ranks, self.machine, batch, words)
        return found or sys.exit("tune finds nothing, and the loop does")


def limit_of(space):
    text = space.fixed.get(MEMORY, '"80 GB"').strip('"')
    return float(text.split()[0]) * 1e9


def compare(bench, name, space):
    bench.write(space)
    specs = list(space.specs())
    results = bench.loop(space, specs)
    done = [(result[0], result[1], spec) for result, spec in zip(results, specs) if result]
    fitting = [one for one in done if one[1] <= limit_of(space)]
    best, found = min(fitting, key=lambda one: one[0]), bench.tune(space)
    searched = found["compiled"], found["bodies"], found["sketches"]
    print(f"{name}: {len(specs)} specs, {len(done)} compile, {len(fitting)} fit; best {best[0]:.4f} ms; tune "
          f"{found['best'][0]['step_ms']:.4f} ms of {found['choices']}, by {searched[0]} specs, {searched[1]} bodies, {searched[2]} "
          f"sketches", flush=True)
    wrong = []
    if found["choices"] != len(specs):
        wrong.append(f"{name}: the loop has {len(specs)} specs, tune {found['choices']}")
    if found["best"][0]["step_ms"] != best[0]:
        wrong.append(f"{name}: the loop's best is {best}, tune's {found['best'][0]}")
    if found["bound_ms"] > best[0]:
        wrong.append(f"{name}: tune's bound is {found['bound_ms']} ms, above the loop's best")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    cases.add_bin(parser)
    parser.add_argument("--only", choices=SPACES, help="one space")
    parser.add_argument("--jobs", type=int, default=2, help="compilations at a time")
    options = parser.parse_args()
    wrong = []
    for name, space in SPACES.items():
        if options.only in (None, name):
            with tempfile.TemporaryDirectory() as folder:
                wrong += compare(Bench(options, pathlib.Path(folder)), name, Space(*space))
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
