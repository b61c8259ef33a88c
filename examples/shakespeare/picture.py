"""Draws the losses of run.py's two programs as SVG: above the losses, below their difference.

A wide pale line is PyTorch's, a thin dark one on it Meshwork's.
"""
import json
import pathlib
import sys

WIDTH, LEFT, RIGHT = 880, 64, 16
TOP, UPPER, GAP, LOWER, FOOT = 52, 280, 34, 90, 44
HEIGHT = TOP + UPPER + GAP + LOWER + FOOT
COLOURS = {"loss": ("#9ec5e8", "#0b4f8a"), "held_out": ("#f5bf8a", "#a34700")}
NAMES = {"loss": "training (mean of 10 steps)", "held_out": "held-out text"}
STEPS = (1, 2, 5)


class Panel:
    """A frame with axes: `place` maps numbers into it."""

    def __init__(self, top, height, across, up):
        self.top, self.height, self.across, self.up = top, height, across, up

    def place(self, x, y):
        (x0, x1), (y0, y1) = self.across, self.up
        return (LEFT + (x - x0) / (x1 - x0) * (WIDTH - LEFT - RIGHT), self.top + (y1 - y) / (y1 - y0) * self.height)

    def line(self, points, colour, width):
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (self.place(*point) for point in points))
        return f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width}" stroke-linejoin="round"/>'

    def dots(self, points, colour):
        return [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{colour}"/>' for x, y in (self.place(*p) for p in points)]

    def frame(self, with_steps):
        parts = []
        for value in ticks(*self.up, max(3, self.height // 40)):
            x, y = self.place(self.across[0], value)
            parts += [f'<path d="M{x:.1f} {y:.1f}H{WIDTH - RIGHT}" stroke="#e2e2e2"/>', text(x - 7, y + 4, f"{value:g}", "end")]
        for value in ticks(*self.across, 8) if with_steps else ():
            x, y = self.place(value, self.up[0])
            parts += [text(x, y + 18, f"{value:g}", "middle")]
        return parts


def ticks(low, high, most):
    """Round numbers from low to high, at most about `most`."""
    size = 10.0 ** -6
    while True:
        for unit in (size * step for step in STEPS):
            if (high - low) / unit <= most:
                first = -(-low // unit)
                return [round((first + i) * unit, 9) for i in range(int((high - first * unit) / unit + 1e-9) + 1)]
        size *= 10


def text(x, y, words, anchor="start", weight="normal"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}" font-size="12.5" '
            f'font-family="sans-serif" fill="#222">{words}</text>')


def legend():
    parts, y = [f'<rect x="{WIDTH - 356}" y="{TOP + 4}" width="340" height="88" fill="#fff"/>'], TOP + 20
    for kind in ("loss", "held_out"):
        for name, colour, width in zip(("PyTorch", "Meshwork"), COLOURS[kind], (6, 1.6)):
            x = WIDTH - 340
            parts += [f'<path d="M{x} {y}h34" stroke="{colour}" stroke-width="{width}"/>',
                      text(x + 44, y + 4, f"{name}, {NAMES[kind]}")]
            y += 20
    return parts


def drawn(told):
    """The picture of what run.py keeps in losses.json."""
    ours, theirs = told["meshwork"], told["pytorch"]
    losses = [loss for one in (ours, theirs) for kind in NAMES for _, loss in one[kind]]
    last = max(step for step, _ in ours["loss"] + ours["held_out"])
    across, largest = (0, last), max(abs(d) for _, d in told["difference"]) or 1e-6
    upper = Panel(TOP, UPPER, across, (min(losses) - 0.2, max(losses) + 0.1))
    lower = Panel(TOP + UPPER + GAP, LOWER, across, (-1.1 * largest, 1.1 * largest))
    parts = [*upper.frame(False), *lower.frame(True)]
    for kind in NAMES:
        for one, colour, width in zip((theirs, ours), COLOURS[kind], (6, 1.6)):
            parts.append(upper.line(one[kind], colour, width))
        parts += upper.dots(ours["held_out"], COLOURS["held_out"][1]) if kind == "held_out" else []
    parts += [lower.line(told["difference"], COLOURS["loss"][1], 1.2), *legend(),
              text(LEFT, 22, told["title"], weight="bold"), text(LEFT, TOP - 10, "loss, nats a token"),
              text(LEFT, TOP + UPPER + GAP - 8, "training: Meshwork's loss less PyTorch's, the largest of each 10 steps"),
              text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, "steps", "middle")]
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}">'
    # GitHub may show it on a dark page.
    return "\n".join([head, f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>', *parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    pathlib.Path(sys.argv[2]).write_text(drawn(json.loads(pathlib.Path(sys.argv[1]).read_text())))
