"""Stage `attention`: attention alone, by each way, over head dims and lengths. Told, not judged."""
import functools

import cases
import process
import rows
from speeds import Timed, json_lines, rates_of
from stages import Case


def groups(timed):
    return rows.groups(first_way(timed), "attention")


def first_way(timed):
    """Instructions by the first way that ran."""
    return next(iter(timed.ways.values()), [])


class Attention:
    """PyTorch's side is one process for all shapes: it takes seconds to start."""

    def __init__(self, gpu, small):
        self.shapes = [Timed(name, gpu, small) for name in cases.attention(small)]

    def cases(self):
        ways = [Case(f"{x.name} ways", functools.partial(x.ways_of_attention, f"{x.name} ways")) for x in self.shapes]
        return [*ways, Case("attention", self.compare)]

    def rates(self, folder):
        """Lines of each of `shapes`, which number their own operations from 0; and what went wrong."""
        asked = [(x.name, i, group.shape) for x in self.shapes for i, group in enumerate(groups(x))]
        try:
            done = rates_of(folder, [], [shape for _, _, shape in asked])
        except process.NotRun as why:
            return [], [f"PyTorch: not run: {why}"]
        found = [{**line, "attention": asked[line["attention"]][1], "name": asked[line["attention"]][0]}
                 for line in json_lines(done.stdout) if "attention" in line]
        return found, [line["why"] for line in found if "why" in line] + done.stderr.strip().splitlines()[-1:]

    def compare(self, report, folder):
        if not any(map(groups, self.shapes)):
            raise process.NotRun("no way of attention ran")
        rates, lines = self.rates(folder)
        table = []
        for x in (x for x in self.shapes if groups(x)):
            names, *found = rows.attention(first_way(x), x.ways, [line for line in rates if line["name"] == x.name])
            table += ([names] if not table else []) + found
        report.add("attention", None, "TFLOP/s of what the mask leaves", table=table, lines=lines)


def attention(gpu, small):
    return lambda: Attention(gpu, small).cases()
