"""Stages `pytorch:MODEL`: a step of PyTorch's beside ours, in one run. Told, not judged."""
import functools

import cases
import launcher
import libraries
import process
from speeds import Timed, json_lines, torch_python
from stages import Case


def rival_of(name):
    """The timed case whose model PyTorch runs, if any: those that differ in our precision have one."""
    return cases.TIMED[name].get("against", name)


def names():
    return list(dict.fromkeys(filter(None, map(rival_of, cases.TIMED))))


def torch_lines(name, sequence, batch):
    """Lines of torch_step.py, also of one that did not end."""
    done = process.call([torch_python(), launcher.HERE / "torch_step.py", launcher.HERE / "configs" / f"{name}.json",
                         batch, sequence], limit_s=process.Clock.left(), environment=libraries.OUTSIDE)
    lines = json_lines(done.stdout)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        lines.append({"way": "the rest", "why": last})
    return lines


def told(line):
    """One way to run the step."""
    return f"{line['way']}: " + (f"{line['step_ms']:.2f} ms" if "step_ms" in line else f"not run: {line['why']}")


class Rival:
    def __init__(self, name, gpu, small):
        self.name, self.small = name, small
        self.ours = {x: Timed(x, gpu, small) for x in cases.TIMED if rival_of(x) == name}

    def cases(self):
        """Ours first: they take seconds."""
        steps = [Case(f"pytorch {x} step", functools.partial(timed.step, f"pytorch {x} step"))
                 for x, timed in self.ours.items()]
        what = f"pytorch {self.name} PyTorch"
        return [*steps, Case(what, functools.partial(self.torch_step, what))]

    def torch_step(self, what, report, _folder):
        lines = torch_lines(self.name, cases.sequence(self.small), cases.batch(cases.TIMED[self.name], self.small))
        good = [x for x in lines if "step_ms" in x]
        if not good:
            raise process.NotRun("; ".join(map(told, lines)) or "no output")
        best = min(good, key=lambda x: x["step_ms"])
        ratios = {x: best["step_ms"] / timed.step_ms for x, timed in self.ours.items() if timed.step_ms}
        report.add(what, None, f"{best['step_ms']:.2f} ms ({best['way']}, {best['micro']} sequences at once, attention by "
                   f"{best['attention']}, PyTorch {best['torch']})" + "".join(
                       f"; ours of {x} is {ratio:.2f} times as fast" for x, ratio in ratios.items()),
                   lines=list(map(told, lines)), torch=best, ratios=ratios, ways=lines)


def rival(name, gpu, small):
    return lambda: Rival(name, gpu, small).cases()
