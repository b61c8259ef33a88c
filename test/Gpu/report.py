"""What was found: gpu-check.json with every number, gpu-check.txt to read."""
import json
import pathlib
import time

MARKS = {"ok": "ok     ", "failed": "FAILED ", "told": "       ", "not run": "not run"}


def status_of(good):
    return {True: "ok", False: "failed", None: "told"}[good]


def aligned(rows):
    """Lines of a table: the first row has the names of the columns."""
    cells = [["" if x is None else f"{x:.3g}" if isinstance(x, float) and abs(x) < 100 else
              f"{x:.0f}" if isinstance(x, float) else str(x) for x in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells)]
    numeric = [all(not isinstance(row[i], str) for row in rows[1:]) for i in range(len(widths))]
    return ["  ".join(x.rjust(w) if right else x.ljust(w) for x, w, right in zip(row, widths, numeric)).rstrip()
            for row in cells]


class Report:
    """Rows of stages, written after each one. Rows that an earlier call wrote into the same file
    stay, but for those of the stages that run again: stages may be run one by one."""

    def __init__(self, folder, about, stages=()):
        folder = pathlib.Path(folder)
        self.json, self.text = folder / "gpu-check.json", folder / "gpu-check.txt"
        self.about, self.start, self.stage = about, time.monotonic(), ""
        self.rows = [row for row in self.earlier() if row["stage"] not in stages]
        self.mine = []

    def earlier(self):
        """None of another build or machine."""
        try:
            before = json.loads(self.json.read_text())
            same = all(before.get(key) == self.about.get(key) for key in ("gpu", "bundle"))
            return before["rows"] if same else []
        except (OSError, ValueError, KeyError):
            return []

    @property
    def failed(self):
        return any(row["status"] == "failed" for row in self.mine)

    def seconds(self):
        return round(time.monotonic() - self.start)

    def add(self, what, good, text, **numbers):
        """good: True, False, or None for what is told and not judged. `table`, if there is one, is a
        list of rows of which the first has the names; `lines` is a list of lines below the row."""
        self._add(what, good, status_of(good), text, numbers)

    def not_run(self, what, why):
        self._add(what, None, "not run", why, {})

    def _add(self, what, good, status, text, numbers):
        row = {"stage": self.stage, "what": what, "good": good, "status": status, "text": text, **numbers}
        self.rows.append(row)
        self.mine.append(row)
        print("\n".join(self.lines_of(row)), flush=True)
        self.write()

    @staticmethod
    def lines_of(row):
        lines = [f"{MARKS[row['status']]} {row['what']}: {row['text']}"]
        below = [*row.get("lines", []), *(aligned(row["table"]) if row.get("table") else [])]
        return lines + [f"          {line}" for line in below]

    def counts(self):
        return {status: sum(row["status"] == status for row in self.rows) for status in MARKS}

    def summary(self):
        counts = self.counts()
        return f"{counts['ok']} ok, {counts['failed']} failed, {counts['not run']} not run, {counts['told']} told"

    def write(self):
        self.json.write_text(json.dumps({**self.about, "seconds": self.seconds(), "counts": self.counts(),
                                         "rows": self.rows}, indent=1))
        head = [f"{key}: {value}" for key, value in self.about.items() if not isinstance(value, list)]
        self.text.write_text("\n".join([*head, self.summary(), "", *(
            line for row in self.rows for line in self.lines_of(row))]) + "\n")
