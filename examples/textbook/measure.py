"""Runs a spec with all layers of a model and with half of them. What a layer takes is the difference: what the launcher,
its libraries and the head take is equal in both."""
import collections
import functools
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tomllib

FOLDER = pathlib.Path(__file__).resolve().parent
BIN = pathlib.Path(os.environ.get("MESHWORK_BIN", FOLDER.parents[1] / "build" / "bin"))
# Of a family, the keys of the number of layers and of the width.
KEYS = {"gpt2": ("n_layer", "n_embd"), "mixtral": ("num_hidden_layers", "hidden_size")}
BATCH_AXES = ("dp", "fsdp", "ep")
UNITS = {"F": 1, "B": 2, "I": 1, "W": 1}
STEPS = 3
DATA = ("--data", FOLDER.parents[1] / "LICENSE", "--tokenizer", "bytes", "--threads", 1, "--no-pin")


def call(*command, **more):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, stdin=subprocess.DEVNULL, **more)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


class Spec:
    """A spec of this folder: its plans with all layers and with half of them, and their runs."""

    def __init__(self, name, model, folder):
        self.name, self.folder = name, pathlib.Path(folder)
        self.text = tomllib.loads((FOLDER / f"{name}.toml").read_text())
        self.config = json.loads((FOLDER / f"{model}.json").read_text())
        self.key, width = KEYS[self.config["model_type"]]
        self.width = self.config[width]
        self.layers = self.config[self.key] // 2  # that the two plans differ by
        axes = {name: int(size) for name, size in (axis.split("=") for axis in self.text["mesh"]["axes"])}
        self.ranks = math.prod(axes.values())
        batch = self.text["batch"]
        self.microbatches = batch["global"] // (batch["micro"] * math.prod(axes.get(name, 1) for name in BATCH_AXES))

    @functools.cached_property
    def whole(self):
        return Plan(self, self.config[self.key])

    @functools.cached_property
    def half(self):
        return Plan(self, self.config[self.key] - self.layers)

    def of_a_layer(self, query):
        """Of a function of what `explain --json` says."""
        return (query(self.whole.told) - query(self.half.told)) / self.layers

    def memory(self, query):
        """Bytes of a layer on a rank: how much more memory the process takes, less what the plan says of all but
        `query`."""
        def others(told):
            return told["memory_per_rank_bytes"]["peak"] - query(told)
        grown = [plan.grown() / self.ranks for plan in (self.whole, self.half)]
        return (grown[0] - grown[1]) / self.layers - self.of_a_layer(others)

    def traffic(self, query):
        """Bytes of a layer that a rank sends in a step, less what the plan says of all but `query`. None where the
        system lets nobody count."""
        def others(told):
            return sum(c["bytes_sent_per_rank"] for c in told["collectives"]) - query(told)
        sent = [plan.sent() for plan in (self.whole, self.half)]
        if None in sent:
            return None
        return (sent[0] - sent[1]) / (self.layers * STEPS * self.ranks) - self.of_a_layer(others)

    def bubble(self):
        """The part of a step in which ranks wait, if each did what the trace of a run says, in that order, and F, I and
        W took one unit, B two and transfers none."""
        order = list(self.whole.order().values())
        last = max(stage for rank in order for _, stage, _ in rank)
        ends, clocks, at = {}, [0] * len(order), [0] * len(order)
        while any(i < len(rank) for i, rank in zip(at, order)):
            before = list(at)
            for r, rank in enumerate(order):
                while at[r] < len(rank) and (ready := ready_at(rank[at[r]], ends, last)) is not None:
                    clocks[r] = ends[rank[at[r]]] = max(clocks[r], ready) + UNITS[rank[at[r]][0]]
                    at[r] += 1
            if at == before:
                raise RuntimeError(f"{self.name}: the order of the trace cannot be: {order}")
        busy = sum(UNITS[kind] for rank in order for kind, _, _ in rank)
        return 1 - busy / len(order) / max(clocks)


def ready_at(action, ends, last):
    """When what an action waits for has ended; None where it has not."""
    kind, stage, microbatch = action
    needs = {"F": [("F", stage - 1)] if stage > 0 else [], "W": [("I", stage)]}.get(kind)
    if needs is None:
        of_next = next((k for k in "BI" if (k, stage + 1, microbatch) in ends), "B")
        needs = [("F", stage)] + ([(of_next, stage + 1)] if stage < last else [])
    known = [ends.get((*need, microbatch)) for need in needs]
    return None if None in known else max(known, default=0)


class Plan:
    """A spec's plan with so many layers."""

    def __init__(self, spec, layers):
        self.ranks = spec.ranks
        model, self.path = (spec.folder / f"{spec.name}-{layers}.{ending}" for ending in ("json", "mwplan"))
        model.write_text(json.dumps({**spec.config, spec.key: layers}))
        call(BIN / "meshwork", "compile", model, "--spec", FOLDER / f"{spec.name}.toml", "-o", self.path)
        self.told = json.loads(call(BIN / "meshwork", "explain", self.path, "--json"))

    def run(self, steps, *options):
        call(BIN / "meshwork-run", self.path, *DATA, "--steps", steps, *options)

    def grown(self):
        """Bytes by which a run of all ranks in one process grows."""
        metrics = self.path.with_suffix(".jsonl")
        metrics.unlink(missing_ok=True)
        self.run(1, "--metrics", metrics)
        return json.loads(metrics.read_text().splitlines()[0])["memory_peak_bytes"]

    def sent(self):
        """Bytes that cross a network that the ranks, each a process, have for themselves."""
        done = subprocess.run(["unshare", "--net", "--map-root-user", sys.executable, __file__, self.path, str(self.ranks)],
                              capture_output=True, text=True)
        if "unshare" in done.stderr:
            return None
        if done.returncode != 0:
            raise RuntimeError(done.stdout + done.stderr)
        return int(done.stdout.split()[-1])

    def trace(self, steps):
        """Events of computation, in their order."""
        path = self.path.with_suffix(".trace")
        self.run(steps, "--trace", path, "--trace-steps", steps)
        events = json.loads(path.read_text())["traceEvents"]
        return sorted((e for e in events if e["ph"] == "X" and "action" in e.get("args", {})), key=lambda e: e["ts"])

    def order(self):
        """What each rank did in a step, one after the other: ("F", stage, microbatch)."""
        done = collections.defaultdict(dict)
        for event in self.trace(1):
            if found := re.fullmatch(r"(\d+)([FBIW])(\d+)", event["args"]["action"]):
                done[event["pid"]].setdefault((found[2], int(found[1]), int(found[3])))
        return {rank: list(actions) for rank, actions in sorted(done.items())}

    def attention(self, steps=5):
        """Microseconds of each rank's attention: of each instruction the least of all steps."""
        least = collections.defaultdict(dict)
        for event in self.trace(steps):
            if event["cat"].startswith("Attention"):
                times, key = least[event["pid"]], (event["args"]["action"], event["args"]["instruction"])
                times[key] = min(times.get(key, event["dur"]), event["dur"])
        return [sum(times.values()) for _, times in sorted(least.items())]


def bytes_on_loopback():
    for line in pathlib.Path("/proc/self/net/dev").read_text().splitlines():
        if line.strip().startswith("lo:"):
            return int(line.split()[1])
    return 0


def run_in_a_network_of_its_own(plan, ranks):
    call("ip", "link", "set", "lo", "up")
    told = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500", "WORLD_SIZE": str(ranks)}
    before = bytes_on_loopback()
    runs = [subprocess.Popen([str(part) for part in (BIN / "meshwork-run", plan, *DATA, "--steps", STEPS)],
                             stdout=subprocess.DEVNULL, env={**os.environ, **told, "RANK": str(rank)}) for rank in range(ranks)]
    if any([run.wait() for run in runs]):
        sys.exit("a rank failed")
    print(bytes_on_loopback() - before)


if __name__ == "__main__":
    run_in_a_network_of_its_own(sys.argv[1], int(sys.argv[2]))
