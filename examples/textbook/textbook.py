#!/usr/bin/env python3
"""Compares what textbooks say of parallel training with plans and with runs, and prints the table of README.md.

    examples/textbook/textbook.py             # all claims
    examples/textbook/textbook.py zero3 tp    # those of these specs
    examples/textbook/textbook.py --write     # into README.md
"""
import argparse
import concurrent.futures
import re
import sys
import tempfile

import claims
import measure

HEAD = ["claim", "source", "spec", "closed form", "closed", "planned", "measured"]
README = measure.FOLDER / "README.md"
TABLE = re.compile(r"(?m)^\| claim \|.*\n(?:\|.*\n)+")


def numbers_of(wanted):
    """(claim, closed, planned, measured) of each; two at a time."""
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
        specs = {}
        for one in wanted:
            specs.setdefault((one.spec, one.model), measure.Spec(one.spec, one.model, folder))
        by_spec = {key: [one for one in wanted if (one.spec, one.model) == key] for key in specs}
        found = pool.map(lambda key: {one.title: one.numbers(specs[key]) for one in by_spec[key]}, specs)
        told = {title: numbers for some in found for title, numbers in some.items()}
    return [(one, *told[one.title]) for one in wanted]


def row(one, *numbers):
    texts = ["-" if number is None else one.as_text.format(number) for number in numbers]
    return [one.title, one.source, f"[{one.spec}]({one.spec}.toml)", f"`{one.form}`", *texts]


def table(rows):
    lines = [HEAD, ["---"] * 4 + ["---:"] * 3, *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("specs", nargs="*", help="names of specs; default: all")
    arguments.add_argument("--write", action="store_true", help="put the table into README.md")
    options = arguments.parse_args()
    known = {one.spec for one in claims.CLAIMS}
    if unknown := set(options.specs) - known:
        arguments.error(f"no claim has the spec {', '.join(sorted(unknown))}; expected some of {', '.join(sorted(known))}")
    if options.write and options.specs:
        arguments.error("--write needs all claims; name no spec")
    wanted = [one for one in claims.CLAIMS if not options.specs or one.spec in options.specs]
    made = table([row(*numbers) for numbers in numbers_of(wanted)])
    sys.stdout.write(made)
    if options.write:
        README.write_text(TABLE.sub(lambda _: made, README.read_text()))


if __name__ == "__main__":
    main()
