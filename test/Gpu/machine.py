"""Stage `machine`: what the launcher measures of this GPU, beside the figures of a shipped machine. Told, not judged."""
import functools

import launcher
import process
from stages import Case

SHIPPED = ("h100x8", "h200x8", "a100x8", "b200x8")  # the first where no other fits


def shipped_for(gpu):
    """By the name that the driver gives: "NVIDIA H200"."""
    return next((name for name in SHIPPED if name.removesuffix("x8").upper() in gpu.upper()), SHIPPED[0])


def figures(text):
    """Numbers of a machine file, by "section.key": Python 3.10 reads no TOML."""
    found, section = {}, ""
    for line in text.splitlines():
        key, _, value = (part.strip() for part in line.partition("#")[0].partition("="))
        if key.startswith("["):
            section = key.strip("[]") + "."
        try:
            found[section + key] = float(value)
        except ValueError:
            continue
    host = found.pop("memory.host", None)  # the older name
    return found if host is None else {**found, "link.host.bandwidth": host}


def table(measured, shipped, name):
    """Figures that a measurement has; an estimate reads those of products.tiles in the place of half_size."""
    rows = [["", "measured", name, "measured / shipped"]]
    for key, value in measured.items():
        other = shipped.get(key)
        rows.append([key, f"{value:.3g}", None if other is None else f"{other:.3g}",
                     f"{value / other:.2f}" if other else None])
    return rows


def measure(gpu, report, folder):
    path = folder / "machine.toml"
    done = process.ended([*launcher.RUN, "--measure-machine", path, "--measure-device", "cuda"], limit_s=150)
    if done.returncode == launcher.UNAVAILABLE:
        raise process.NotRun(launcher.message(done))
    if done.returncode != 0:
        raise RuntimeError(launcher.message(done))
    name, text = shipped_for(gpu), path.read_text()
    shipped = (launcher.HERE / "machines" / f"{name}.toml").read_text()
    report.add("machine", None, f"as measured, beside {name}", file=text,
               lines=[line for line in done.stdout.splitlines() if "written to" not in line],
               table=table(figures(text), figures(shipped), name))


def machine(gpu):
    return lambda: [Case("machine", functools.partial(measure, gpu))]
