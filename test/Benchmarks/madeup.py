#!/usr/bin/env python3
"""`meshwork tune` on machines that nobody built: does it lose the best spec?

    test/Benchmarks/madeup.py [--searches 20] [--seed 1]

Each search has a random machine (slow links, long latency, few ranks in a node), a small model, and random keys that are
fixed. It runs twice: as usual, and with --within so large that every spec is compiled. Both must name the same best step.
Specs that take less than their bound are told, too: there the search is right by its doubt alone, or by luck.
"""
import argparse
import collections
import json
import pathlib
import random
import subprocess
import sys
import tempfile

import cases
import exhaustive
import searches

MACHINE = (cases.ROOT / "examples" / "machines" / "h100x8.toml").read_text()
EVERYTHING = ("--within", "100000%")
LONGEST_S = 300  # of a search; longer ones are left out

Asked = collections.namedtuple("Asked", "machine model ranks batch words")


def changed(text, section, key, value):
    """TOML with another value; `value` makes it of the old one."""
    head, found, tail = text.partition(f"\n[{section}]") if section else ("", "", text)
    lines = tail.split("\n")
    at = next(i for i, line in enumerate(lines) if line.startswith(f"{key} = "))
    lines[at] = f"{key} = {value(float(lines[at].split()[2]))}"
    return head + found + "\n".join(lines)


def machine(draw):
    per_node, adapters = draw.choice([1, 2, 4, 8]), draw.choice([1, 2, 8])
    text = changed(MACHINE, "", "ranks_per_node", lambda _: per_node)
    text = changed(text, "node", "adapters", lambda _: adapters)
    for section, key, factors in (("link.between_nodes", "bandwidth", [1, 0.1, 0.02]), ("link.within_node", "bandwidth", [1, 0.3, 0.05]),
                                  ("link.within_node", "latency", [1, 0.1, 10]), ("overlap", "slowdown", [1, 1, 0])):
        factor = draw.choice(factors)
        text = changed(text, section, key, lambda old, factor=factor: old * factor)
    return text + draw.choice(["", "", "\n[host]\ninstruction = 1e-5\n"])


def model(draw):
    experts = draw.random() < 0.3
    sizes = {"num_hidden_layers": draw.choice([4, 6] if experts else [6, 8, 12]), "hidden_size": 256 if experts else draw.choice([512, 1024]),
             "num_attention_heads": 8, "num_key_value_heads": 8, "intermediate_size": 512 if experts else draw.choice([1024, 2816])}
    return {**(exhaustive.EXPERTS if experts else exhaustive.LLAMA), **sizes}


def fixed(draw):
    """Keys that make spaces small, and others that bounds might not know of."""
    chosen = {"recompute.policy": json.dumps(draw.choice(["none", "selective", "full"]))}
    for key, values, part in (("zero.stage", ["0", "1", "2", "3"], 0.6), ("zero.gradients", ['"int4"'], 0.3), ("zero.weights", ['"int8"'], 0.3),
                              ("precision.gradients", ['"bf16"'], 0.2), ("precision.matmul", ['"fp8"'], 0.2),
                              ("overlap.collectives", ['"never"'], 0.2), ("batch.micro", ["1", "2"], 0.5)):
        if draw.random() < part:
            chosen[key] = draw.choice(values)
    return chosen


def ask(draw):
    axes = dict(draw.sample([("pp", draw.choice([1, 2, 4])), ("cp", draw.choice([1, 2])), ("tp", draw.choice([1, 2])),
                             ("dp", draw.choice([1, 2, 4]))], 3))
    batch = {"global": draw.choice([8, 16]), "sequence": draw.choice([256, 2048])}
    return Asked(machine(draw), model(draw), draw.choice([4, 8]), batch, [*searches.axes(axes), *searches.fixed(fixed(draw))])


def search(tools, folder, asked, words):
    (folder / "machine.toml").write_text(asked.machine)
    (folder / "model.json").write_text(json.dumps(asked.model))
    return searches.best_of(tools, folder / "model.json", asked.ranks, folder / "machine.toml", asked.batch, [*asked.words, *words],
                            LONGEST_S)


def compare(tools, folder, number, asked):
    """Whether the search as usual finds the best; None where there is nothing to find, or too much."""
    try:
        whole = search(tools, folder, asked, EVERYTHING)
    except subprocess.TimeoutExpired:
        return print(f"{number}: longer than {LONGEST_S} s", flush=True)
    if not whole:
        return print(f"{number}: no spec can be", flush=True)
    usual, best = search(tools, folder, asked, []), whole["best"][0]
    over = [row["bound_ms"] / row["step_ms"] for row in whole["best"] if row["bound_ms"] > row["step_ms"]]
    lost = usual["best"][0]["step_ms"] / best["step_ms"]
    print(f"{number}: {len(whole['best'])} specs, {usual['compiled']} compiled as usual; {len(over)} below a bound, by up to "
          f"{100 * (max(over, default=1) - 1):.1f} %; best {best['step_ms']:.4f} ms, found {lost:.4f} times it", flush=True)
    if lost != 1:
        print(f"  {best['name']}, not {usual['best'][0]['name']}: {asked.ranks} ranks, {asked.batch}, {' '.join(asked.words)}", flush=True)
    return lost == 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    cases.add_bin(parser)
    parser.add_argument("--searches", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    draw = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as folder:
        found = [compare(options.bin, pathlib.Path(folder), number, ask(draw)) for number in range(options.searches)]
    if False in found:
        sys.exit(f"{found.count(False)} of {sum(one is not None for one in found)} searches lose the best spec")


if __name__ == "__main__":
    main()
