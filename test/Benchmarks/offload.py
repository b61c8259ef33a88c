#!/usr/bin/env python3
"""States of the optimizer in the host's memory: how much of the copies is hidden, and how much the estimate says.

    test/Benchmarks/offload.py [--model llama-30m.json] [--rounds 3] [--steps 10]

One rank of one core trains with its states on the device, and with its states in the host's memory over links of several
speeds. On a CPU both memories are the same one, so `slowLink.so` makes each copy as slow as the link would. The machine is
measured first. A run and its estimate are both told as what the copies add to a step. Plans take turns.
"""
import argparse
import datetime
import json
import pathlib
import re
import sys
import tempfile

import cases
from parallel import Bench, median

RATES = (0.5e9, 1e9, 2e9, 4e9)  # bytes a second
FEW_TOKENS = ("batch.global=1", "batch.micro=1", "batch.sequence=64")  # so that the update counts


class Offload(Bench):
    def measure_machine(self):
        path = self.folder / "measured.toml"
        self.must(self.options.bin / "meshwork-run", "--measure-machine", path)
        return path.read_text()

    def machine(self, measured, rate):
        """The measured one, with another link to the host."""
        path = self.folder / f"link-{rate:.0f}.toml"
        others = re.sub(r"(?ms)^\[link\.host\]\n.*?(?=^\[|\Z)", "", measured)
        path.write_text(f"{others}\n[link.host]\nbandwidth = {rate:.0f}\nlatency = 0\nshared_by = 1\ntakes_cores = false\n")
        return path

    def plans(self, measured, rate):
        machine = f'target.machine="{self.machine(measured, rate)}"'
        offload = ("offload.optimizer=true", 'offload.window="4 MiB"')
        return {kept: self.compile(f"{kept}-{rate:.0f}", 1, machine, *FEW_TOKENS, *(offload if kept == "host" else ()))
                for kept in ("device", "host")}

    def told(self, plan):
        return json.loads(self.must(self.options.bin / "meshwork", "explain", plan, "--json"))

    def row(self, measured, rate):
        plans, slow = self.plans(measured, rate), {"LD_PRELOAD": str(self.options.slow_link), "SLOW_LINK": str(rate)}
        runs = self.in_turns({kept: (plan, None, ("--threads", 1), slow) for kept, plan in plans.items()})
        told = {kept: self.told(plan) for kept, plan in plans.items()}
        host = told["host"]["host_memory_per_rank"]
        copies = (host["to_host_bytes_per_step"] + host["to_device_bytes_per_step"]) / rate * 1e3
        added = {"measured": median(runs["host"], "step_ms") - median(runs["device"], "step_ms"),
                 "estimated": told["host"]["estimate"]["step_ms"] - told["device"]["estimate"]["step_ms"]}
        hidden = {how: 1 - ms / copies for how, ms in added.items()}
        print(f"link of {rate / 1e9:g} GB/s: step {median(runs['device'], 'step_ms'):.0f} ms, with states in the host's memory "
              f"{median(runs['host'], 'step_ms'):.0f} ms; of {copies:.0f} ms of copies {hidden['measured']:.0%} hidden, "
              f"estimated {hidden['estimated']:.0%}", flush=True)
        return {"bytes_per_second": rate, "copies_ms": copies, "added_ms": added, "hidden": hidden, "steps": runs}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    cases.add_bin(parser)
    parser.add_argument("--model", default="llama-30m.json", help="a file of examples/")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each plan")
    parser.add_argument("--steps", type=int, default=10, help="steps a turn")
    parser.add_argument("--output", help="default: results/offload-DATE.json here")
    options = parser.parse_args()
    options.slow_link = pathlib.Path(options.bin).resolve().parent / "test" / "slowLink.so"
    date = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H%M")
    with tempfile.TemporaryDirectory() as folder:
        bench = Offload(options, folder)
        measured = bench.measure_machine()
        results = {"date": date, "model": options.model, "links": [bench.row(measured, rate) for rate in RATES]}
    output = pathlib.Path(options.output or pathlib.Path(__file__).parent / "results" / f"offload-{date}.json")
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(results, indent=1) + "\n")
    print(f"written to {output}")


if __name__ == "__main__":
    sys.exit(main())
