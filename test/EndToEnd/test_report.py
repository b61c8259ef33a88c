"""`meshwork report`: one HTML page, whose numbers are those of `explain --json` and of the run's own files."""
import html.parser
import json
import shutil
import subprocess
import unittest
import urllib.parse

import shell

MODEL = "examples/llama-tiny.json"
VOID = {"meta", "link", "br", "img", "input", "hr"}


class Reader(html.parser.HTMLParser):
    """Tags that open and close in order, and the text of the element with the data."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.outside, self.text, self.tags = [], [], "", []
        self.titles, self.items, self.named = [], [], []  # texts of h2, of li, and of what is a name

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.outside += [value for key, value in attributes if key in ("src", "href", "action")]
        self.named += [value for key, value in attributes if key == "data-value"]
        if tag not in VOID:
            self.open.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        if not self.open or self.open[-1][0] != tag:
            raise AssertionError(f"</{tag}> closes {self.open}")
        self.open.pop()

    def handle_data(self, text):
        if self.open and self.open[-1][1].get("id") == "data":
            self.text += text
        elif self.open and self.open[-1][0] in ("h2", "li"):
            (self.titles if self.open[-1][0] == "h2" else self.items).append(text)


def read(text):
    reader = Reader()
    reader.feed(text)
    reader.close()
    return reader


def name_of(why, place):
    scope, leaf, _ = why["values"][place]
    return why["scopes"][scope] + why["leaves"][leaf]


def dims_of(why, place):
    """What `explain NAME --json` has as `dims`, from the page's tables alone."""
    def chain(at, cause):
        links = []
        while cause:
            axis, annotation, op, factor, back, dim = cause
            if annotation is not None:
                return links + [why["annotations"][annotation]]
            link = {"op": op, "factor": factor}
            links.append(link)
            at -= back
            story = why["stories"][why["values"][at][2]]["dims"][dim]
            link.update(follows=name_of(why, at), dim=story["dim"])
            cause = next((one for one in story["causes"] if one[0] == axis), None)
        return links
    return [{"dim": dim["dim"], "axes": [{"axis": cause[0], "chain": chain(place, cause)} for cause in dim["causes"]]}
            for dim in why["stories"][why["values"][place][2]]["dims"]]


class Report(unittest.TestCase):
    cost_s = 15

    @classmethod
    def setUpClass(cls):
        cls.space = shell.Shell()
        cls.addClassCleanup(cls.space.close)
        for name, spec, steps in (("sp", "tp2-sp", 3), ("pp", "pp2", 5)):
            cls.space.must("meshwork", "compile", MODEL, "--spec", f"examples/{spec}.toml", "-o", f"{name}.mwplan")
            cls.space.must("meshwork-run", f"{name}.mwplan", "--data", "README.md", "--tokenizer", "bytes", "--steps",
                           steps, "--trace", f"{name}.json", "--metrics", f"{name}.jsonl", "--eval-every", "2",
                           "--held-out", "0.1")

    def page(self, plan, *options):
        self.space.must("meshwork", "report", plan, *options, "-o", "report.html")
        self.reader = read(self.space.read("report.html"))
        self.assertEqual(self.reader.open, [])
        return json.loads(self.reader.text)

    def explain(self, *arguments):
        return json.loads(self.space.must("meshwork", "explain", *arguments, "--json").stdout)

    def test_numbers_are_those_of_explain(self):
        for name in ("sp", "pp"):
            with self.subTest(name):
                told = self.explain(f"{name}.mwplan", "--measured", f"{name}.json")
                page = self.page(f"{name}.mwplan", "--trace", f"{name}.json")
                del told["schedule"], told["rank_classes"]
                self.assertEqual(page["explain"], told)
                self.assertEqual(page["text"], self.space.must("meshwork", "explain", f"{name}.mwplan").stdout)

    def test_memory_over_the_step_has_the_peak_of_each_kind(self):
        told = self.explain("pp.mwplan")
        for program, memory in zip(told["rank_classes"], self.page("pp.mwplan")["memory"]):
            # Every moment from the buffers' own lives: the largest sum is one of the page's columns.
            sums = [sum(kinds) for kinds in zip(*memory["bytes"].values())]
            self.assertEqual(max(sums), memory["fullest_bytes"])
            always = sum(one["bytes"] for one in program["buffers"] if one["space"] == "device" and one["kind"] in
                         ("weights", "optimizer"))
            self.assertEqual(memory["bytes"]["weights"][0] + memory["bytes"]["optimizer"][0], always)
            self.assertEqual([last for _, _, last in memory["lists"]][-1], len(sums) - 1)
        stages = told["memory_per_rank_bytes"]["stages"]
        self.assertEqual([one["activations"] for one in stages],
                         [one["most_bytes"]["activations"] for one in self.page("pp.mwplan")["memory"]])

    def test_schedule_planned_and_measured(self):
        page = self.page("pp.mwplan", "--trace", "pp.json")
        actions = self.explain("pp.mwplan")["schedule"]
        for side in (page["schedule"]["planned"], page["schedule"]["measured"]):
            self.assertEqual([row["rank"] for row in side["rows"]], [0, 1])
            is_measured = side is page["schedule"]["measured"]
            for row, expected in zip(side["rows"], actions):
                self.assertEqual({len(span) for span in row["spans"]}, {6 if is_measured else 5})
                spans = sorted(row["spans"], key=lambda span: span[3])
                named = [f"{stage}{word}{microbatch}" for word, stage, microbatch, *_ in spans if len(word) == 1]
                self.assertEqual(named, [one for one in expected if "SEND" not in one and "RECV" not in one])
                self.assertEqual((spans[0][0], spans[-1][0]), ("step", "update"))
                for one, other in zip(spans, spans[1:]):
                    self.assertLessEqual(one[4], other[3] + 0.1)  # rounded to a tenth of a microsecond
        self.assertAlmostEqual(page["schedule"]["planned"]["end_us"], 1e3 * page["explain"]["estimate"]["step_ms"], delta=1)
        self.assertIsNone(self.page("pp.mwplan")["schedule"]["measured"])

    def test_curves_are_those_of_the_run(self):
        series = self.page("pp.mwplan", "--metrics", "pp.jsonl")["metrics"]["series"]
        lines = [json.loads(line) for line in self.space.read("pp.jsonl").splitlines()]
        for key in ("loss", "grad_norm", "eval_loss"):
            self.assertEqual(series[key]["points"], [[one["step"], one[key], 0] for one in lines if key in one], key)
        self.assertEqual(series["loss"]["last"], lines[-1 if "loss" in lines[-1] else -2]["loss"])

    def test_long_runs_become_short_curves(self):
        """A spike stays, a loss that is null is counted, and a run that begins anew is another line."""
        lines = [{"step": step, "loss": 9.5 if step == 31234 else 2 + step % 7 / 10} for step in range(50000)]
        lines += [{"step": 3, "loss": None}, {"step": 4, "loss": 1.5}]
        self.space.write("long.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
        loss = self.page("sp.mwplan", "--metrics", "long.jsonl")["metrics"]["series"]["loss"]
        self.assertLessEqual(len(loss["points"]), 2000)
        self.assertIn([31234, 9.5, 0], loss["points"])
        self.assertEqual(loss["points"][-1], [4, 1.5, 1])
        self.assertEqual((loss["count"], loss["not_finite"], loss["least"]), (50001, 1, 1.5))

    def test_numbers_in_arrays_are_curves_too(self):
        """Those of experts, called as for TensorBoard; of more than 256 the first. Others keep their place."""
        line = {"step": 0, "load": [[3, "word", 5], [], [7]], "mfu": None}
        self.space.write("experts.jsonl", json.dumps(line) + "\n" + json.dumps({"step": 1, "many": list(range(300))}))
        metrics = self.page("sp.mwplan", "--metrics", "experts.jsonl")["metrics"]
        points = {name: one["points"] for name, one in metrics["series"].items()}
        self.assertEqual({name: points[name] for name in ("load/0/0", "load/0/2", "load/2/0", "mfu", "many/252")},
                         {"load/0/0": [[0, 3, 0]], "load/0/2": [[0, 5, 0]], "load/2/0": [[0, 7, 0]], "mfu": [],
                          "many/252": [[1, 252, 0]]})
        self.assertEqual((len(points), metrics["series_left_out"]), (257, 47))

    def test_why_is_what_explain_tells(self):
        why = self.page("sp.mwplan")["why"]
        places = {}
        for place in range(len(why["values"])):
            places.setdefault(name_of(why, place), place)
        for name in ("model.layers.1.self_attn.q_proj", "model.layers.0.input_layernorm", "model.embed_tokens.weight",
                     "lm_head.weight"):
            for value in self.explain("sp.mwplan", name)["values"]:
                place = places[value["name"]]
                self.assertEqual(dims_of(why, place), value["dims"], value["name"])
                self.assertEqual(why["stories"][why["values"][place][2]]["moves"], value["moves"])

    def test_parameters_of_layers_are_one_row(self):
        rows = {row["name"]: row for row in self.page("sp.mwplan")["parameters"]}
        row = rows["model.layers.*.mlp.down_proj.weight"]
        self.assertEqual((row["count"], row["shape"]), (2, [64, 176]))
        weight = next(state for state in row["states"] if state["state"] == "weight")
        self.assertEqual((weight["type"], weight["split"]), ("bf16[64,88]", [[], ["tp"]]))

    def test_nothing_leads_out_of_the_page(self):
        self.page("sp.mwplan")
        self.assertEqual(self.reader.outside, [])
        text = self.space.read("report.html")
        self.assertIn("default-src 'none'", text)
        for word in ("http://", "https://"):  # but for the name of SVG's elements
            self.assertEqual(text.count(word), text.count("http://www.w3.org/2000/svg") if word == "http://" else 0)

    def hostile(self):
        """The page of a plan whose own name, a parameter's and a metric's would open and close tags."""
        odd, key = "</script><script>alert(1)</script><!--\u202e&amp;'.weight", "</script><img src=x onerror=alert(1)>"
        model = self.space.must("meshwork", "import", MODEL).stdout
        self.space.write("odd.mlir", model.replace("lm_head.weight", odd))
        self.space.write("odd.jsonl", json.dumps({"step": 0, key: 1}) + "\n")
        name = "b<script>alert(1)<!--&amp;'\"\u202e.mwplan"
        self.space.must("meshwork", "compile", "odd.mlir", "--spec", "examples/tp2-sp.toml", "-o", name)
        return name, odd, key, self.page(name, "--metrics", "odd.jsonl")

    def test_hostile_names_stay_text(self):
        name, odd, key, page = self.hostile()
        tags = self.reader.tags
        self.assertEqual(page["name"], name)
        self.assertIn(odd, [row["name"] for row in page["parameters"]])
        self.assertIn(odd, [name_of(page["why"], place) for place in range(len(page["why"]["values"]))])
        self.assertEqual(list(page["metrics"]["series"]), [key])
        self.page("sp.mwplan")
        self.assertEqual(self.reader.tags, tags)

    def test_a_plan_of_one_rank(self):
        self.space.must("meshwork", "compile", MODEL, "--spec", "examples/dp1.toml", "-o", "one.mwplan")
        page = self.page("one.mwplan")
        self.assertEqual((page["explain"]["ranks"], len(page["memory"]), len(page["schedule"]["planned"]["rows"])), (1, 1, 1))
        self.assertIsNone(page["metrics"])
        self.assertEqual(self.space.must("meshwork", "report", "one.mwplan", "-o", "-").stdout, self.space.read("report.html"))

    def test_what_is_refused(self):
        def refuse(code, needles, *arguments):
            self.space.write("kept.html", "kept")
            self.space.refuse(code, needles, "meshwork", "report", *arguments, "-o", "kept.html")
            self.assertEqual(self.space.read("kept.html"), "kept")
        refuse(shell.DATA, ["README.md"], "README.md")
        refuse(shell.NO_INPUT, ["absent"], "absent")
        refuse(shell.DATA, ["pp.json", "is a trace of the plan with the source"], "sp.mwplan", "--trace", "pp.json")
        refuse(shell.DATA, ["sp.jsonl"], "sp.mwplan", "--trace", "sp.jsonl")
        refuse(shell.NO_INPUT, ["absent"], "sp.mwplan", "--metrics", "absent")
        good = '{"step":0,"loss":1}\n'
        for bad, needle in (('{"step":1,"lo', "line 2 is not JSON"), ("[1]", "line 2 found an array, expected an object"),
                            ('{"step":[1]}', "line 2 has a \"step\" that is no whole number"),
                            ('{"step":1,"a":%s}' % ("[" * 9 + "]" * 9), "line 2 nests deeper than 8"),
                            ("", "line 2 is not JSON"), ('{"loss":1}', 'line 2 has no "step"'),
                            ('{"step":-1}', "line 2 has a \"step\" that is no whole number"),
                            ('{"step":1,"loss":{"a":1}}', 'line 2 found an object for "loss", expected a number'),
                            ('{"step":1,"loss":1,"loss":2}', 'line 2 has "loss" twice'),
                            ('{"step":1}{"step":2}', "line 2 is not JSON"), ("7", "line 2 found a number, expected an object")):
            self.space.write("bad.jsonl", good + bad + "\n" + good)
            refuse(shell.DATA, ["bad.jsonl", needle], "sp.mwplan", "--metrics", "bad.jsonl")
        self.space.write("empty.jsonl", "")
        refuse(shell.DATA, ["empty.jsonl", "is empty"], "sp.mwplan", "--metrics", "empty.jsonl")

    def test_no_output_is_an_input(self):
        before = (self.space.path / "sp.mwplan").read_bytes()
        (self.space.path / "link").unlink(missing_ok=True)
        (self.space.path / "link").symlink_to("sp.mwplan")
        for output in ("sp.mwplan", "link", "./sp.mwplan"):
            self.space.refuse(shell.USAGE, ["the plan", "--output"], "meshwork", "report", "sp.mwplan", "-o", output)
        for option, name in (("--trace", "sp.json"), ("--metrics", "sp.jsonl")):
            self.space.refuse(shell.USAGE, [option, "--output"], "meshwork", "report", "sp.mwplan", option, name, "-o", name)
        self.space.refuse(shell.CANNOT_CREATE, ["absent/a.html"], "meshwork", "report", "sp.mwplan", "-o", "absent/a.html")
        self.assertEqual((self.space.path / "sp.mwplan").read_bytes(), before)

    def browse(self, query):
        """What a browser makes of report.html: the text that it shows."""
        done = subprocess.run(["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--dump-dom",
                               f"file://{self.space.path}/report.html#why={urllib.parse.quote(query)}"],
                              capture_output=True, text=True, timeout=120)
        self.assertNotIn("CONSOLE", done.stderr)
        return read(done.stdout)

    @unittest.skipUnless(shutil.which("chromium"), "there is no chromium")
    def test_a_browser_shows_it_without_errors(self):
        """And answers a question in the words of explain."""
        name = "model.layers.0.mlp.down_proj"
        self.page("sp.mwplan", "--trace", "sp.json", "--metrics", "sp.jsonl")
        seen = self.browse(name)
        for title in ("Mesh", "Shardings of parameters", "Memory over the step", "Communication by axis", "Schedule",
                      "Loss and other metrics", "All that explain tells"):
            self.assertIn(title, seen.titles)
        told = self.space.must("meshwork", "explain", "sp.mwplan", name).stdout.split("\nWhy ", 1)[1]
        links = [line.strip() for line in told.splitlines() if line.startswith("      as ") or " (default)" in line]
        self.assertGreater(len(links), 1)
        for link in links:
            self.assertIn(link, seen.items)

    @unittest.skipUnless(shutil.which("chromium"), "there is no chromium")
    def test_a_browser_shows_hostile_names_as_text(self):
        _, odd, _, _ = self.hostile()
        seen = self.browse(odd)
        self.assertNotIn("img", seen.tags)
        self.assertEqual(seen.tags.count("script"), self.reader.tags.count("script"))
        self.assertIn(odd.replace("\u202e", "\\u{202e}"), seen.named)


if __name__ == "__main__":
    unittest.main()
