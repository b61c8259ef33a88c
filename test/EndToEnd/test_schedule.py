"""`meshwork schedule`: names and files, costs, pictures, and what strangers type."""
import json
import os
import resource
import unittest
import xml.etree.ElementTree as xml

import shell

EXAMPLES = shell.ROOT / "examples" / "schedules"
LEGAL = "0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n"
CROSSED = ("0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
           "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n")
HANGS = "0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n"


class Schedule(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.space = shell.Shell()
        cls.addClassCleanup(cls.space.close)
        cls.space.write("legal.csv", LEGAL)

    def json(self, *arguments):
        return json.loads(self.space.must("meshwork", "schedule", *arguments, "--json").stdout)

    def refuse(self, code, needles, *arguments):
        return self.space.refuse(code, needles, "meshwork", "schedule", *arguments)

    def pipeline(self, name, *more):
        return (name, "--stages", 4, "--microbatches", 8, *more)

    def test_numbers_are_the_closed_forms(self):
        told = self.json(*self.pipeline("1f1b"))
        self.assertAlmostEqual(told["bubble_fraction"], 3 / 11)
        self.assertEqual((told["makespan"], told["legal"]), (33, True))
        self.assertEqual(told["stages"], [{"busy": 24, "live_microbatches": live}
                                          for live in (4, 3, 2, 1)])
        self.assertEqual(told["actions"][3][:4], ["3F0", "3B0", "3F1", "3B1"])
        told = self.json(*self.pipeline("interleaved-1f1b", "--virtual", 2))
        self.assertAlmostEqual(told["bubble_fraction"], 3 / 19)
        self.assertEqual(len(told["stages"]), 4)
        self.assertEqual(told["rank_of_virtual_stage"], [0, 1, 2, 3] * 2)

    def test_every_name_is_legal(self):
        for name in ("gpipe", "1f1b", "interleaved-1f1b", "zb-h1", "zb-h2", "zb-v", "dualpipe-v",
                     "auto"):
            with self.subTest(name):
                self.assertTrue(self.json(*self.pipeline(name))["legal"])

    def test_auto_chooses_the_number_of_virtual_stages(self):
        one, free = (self.json(*self.pipeline("auto", *more)) for more in (("--virtual", 1), ()))
        self.assertEqual(len(one["rank_of_virtual_stage"]), 4)
        self.assertEqual(len(free["rank_of_virtual_stage"]), 16)
        self.assertLess(free["makespan"], one["makespan"])
        self.assertEqual(sum(stage["busy"] for stage in free["stages"]), 4 * 24)

    def test_stash_says_what_weight_gradients_need(self):
        self.space.write("late.csv", "0F0,0I0,0F1,0I1,0W0,0W1\n")
        self.refuse(shell.DATA, ["exceeds the 1", "up to 2"], "late.csv", "--memory", 1)
        self.refuse(shell.DATA, ["exceeds the 1", "up to 1.5"], "late.csv", "--memory", 1, "--stash", 0.5)
        self.json("late.csv", "--memory", 1, "--stash", 0)
        self.assertLess(max(s["live_microbatches"] for s in self.json(*self.pipeline(
            "auto", "--virtual", 1, "--memory", 4, "--stash", 1))["stages"]), 5)
        self.refuse(shell.USAGE, ["stash"], *self.pipeline("1f1b", "--stash", 1.5))

    def test_the_text_shows_the_grid(self):
        text = self.space.must("meshwork", "schedule", *self.pipeline("1f1b")).stdout
        self.assertIn("rank 3 .........F0 B0--- F1 B1---", text)
        for needle in ("makespan  33", "bubble    27.2727 %", "idle      27.2727 %", "legal     yes"):
            self.assertIn(needle, text)
        wide = self.space.must("meshwork", "schedule", "1f1b", "--stages", 4, "--microbatches",
                               500).stdout
        self.assertLess(max(map(len, wide.splitlines())), 170)
        self.assertIn("--svg draws all", wide)

    def test_a_table_that_is_written_is_read_again(self):
        told = self.json(*self.pipeline("zb-v", "--csv", "zb.csv"))
        again = self.json("zb.csv", *self.pipeline("", "--virtual", 2)[1:])
        for key in ("actions", "makespan", "rank_of_virtual_stage"):
            self.assertEqual(told[key], again[key])
        out = self.space.must("meshwork", "schedule", "zb.csv", "--csv", "-").stdout
        self.assertEqual(out, self.space.read("zb.csv"))
        piped = self.space.must("build/bin/meshwork schedule - --csv - < zb.csv").stdout
        self.assertEqual(out, piped)
        self.refuse(shell.DATA, ["has 4 ranks", "--stages contradicts"], "zb.csv", "--stages", 3)

    def test_what_is_about_parameters_is_passed_over(self):
        """As PyTorch writes tables of sharded parameters."""
        self.space.write("sharded.csv", "0UNSHARD,0F0,0B0,0F1,0B1,0REDUCE_GRAD,0RESHARD\n")
        done = self.space.must("meshwork", "schedule", "sharded.csv", "--csv", "-")
        self.assertEqual(done.stdout, "0F0,0B0,0F1,0B1\n")
        self.assertIn('warning: "sharded.csv": passed over 3 actions on parameters', done.stderr)

    def test_transfers_are_added(self):
        told = self.json(*self.pipeline("zb-h1", "--transfers"))
        alone = self.json(*self.pipeline("zb-h1"))
        self.assertEqual(told["makespan"], alone["makespan"])
        self.assertTrue(told["legal_in_order"])
        self.assertNotIn("legal_in_order", alone)
        moves = [a for rank in told["actions"] for a in rank if "SEND" in a or "RECV" in a]
        self.assertEqual(len(moves), 2 * 2 * 3 * 8)

    def test_transfers_that_hang_in_order_can_be_refused(self):
        """Each rank sends before it receives: fine where transfers pass each other, not on one stream."""
        self.space.write("stream.csv", CROSSED)
        told = self.json("stream.csv")
        self.assertEqual((told["legal"], told["legal_in_order"]), (True, False))
        self.refuse(shell.DATA, ['"stream.csv" is not legal', "the table hangs"], "stream.csv", "--in-order")
        self.json(*self.pipeline("zb-h1", "--transfers", "--in-order"))
        self.refuse(shell.USAGE, ["--in-order is about transfers", "add --transfers"],
                    *self.pipeline("zb-h1", "--in-order"))

    def test_idle_time_is_that_of_the_end(self):
        """A schedule that only begins earlier has less of a bubble, and ends when the other does."""
        first, second = (self.json(name, "--stages", 2, "--microbatches", 8) for name in ("zb-h1", "zb-h2"))
        self.assertEqual(first["makespan"], second["makespan"])
        self.assertLess(second["bubble_fraction"], first["bubble_fraction"])
        self.assertAlmostEqual(first["idle_fraction"], second["idle_fraction"])
        busy = sum(rank["busy"] for rank in first["stages"])
        self.assertAlmostEqual(first["idle_fraction"], 1 - busy / 2 / first["makespan"])

    def test_interleaved_has_two_stages_a_rank(self):
        told = self.json(*self.pipeline("interleaved-1f1b"))
        self.assertEqual(told["virtual_stages"], 8)
        self.assertEqual(told["actions"], self.json(*self.pipeline("interleaved-1f1b", "--virtual", 2))["actions"])

    def test_costs(self):
        self.space.write("costs.toml", "forward = [1, 2]\ninput_grad = 3\nweight_grad = 4.5\n"
                                       "transfer = [0.25]\n")
        told = self.json("legal.csv", "--costs", "costs.toml")
        self.assertEqual(told["makespan"], 1 + 0.25 + 2 + 7.5 + 0.25 + 7.5)
        self.assertEqual([s["busy"] for s in told["stages"]], [8.5, 9.5])
        self.assertTrue(told["legal_in_order"])

    def test_bad_costs_are_refused_with_their_line(self):
        rest = "forward = 1\ninput_grad = 1\n"
        for line, needles in (
                ("weight_grads = 1", [":3:1", "unknown key weight_grads",
                                      'did you mean "weight_grad"?', "weight_grad: missing"]),
                ("weight_grad = -1", [":3:15", "found -1, expected a time from 0 to"]),
                ("weight_grad = nan", [":3:15", "found nan"]),
                ("weight_grad = 1e300", [":3:15", "found 1e+300"]),
                ("weight_grad = inf", [":3:15", "found inf"]),
                ("weight_grad = [1]", [":3:15", "found a list of 1", "a list of 2"]),
                ("weight_grad = [1, true]", [":3:19", "found true"]),
                ("weight_grad = '1'", [":3:15", 'found "1"']),
                ("[weight_grad]\nforward = 1", [":3:", "found a table"]),
                ("weight_grad = 1\ntransfer = [1, 2, 3]", [":4:12", "a list of 1"]),
                ("weight_grad = ", [":3:", "is not TOML"])):
            with self.subTest(line):
                self.space.write("bad.toml", rest + line + "\n")
                self.refuse(shell.DATA, ["bad.toml" + needles[0], *needles[1:]], "legal.csv",
                            "--costs", "bad.toml")
        self.refuse(shell.NO_INPUT, ["missing.toml"], "legal.csv", "--costs", "missing.toml")

    def test_an_illegal_table_tells_every_fault(self):
        self.space.write("faults.csv", "0B0,0F0,0F1,0I1\n1F0,1B0,1F1,1B1\n")
        self.refuse(shell.DATA, ['"faults.csv" is not legal', "rank 0, action 1 (0B0): expected "
                                 "after 0F0", "rank 0: 0W1 is missing"], "faults.csv")
        self.space.write("hangs.csv", HANGS)
        done = self.refuse(shell.DATA, ["the shortest such cycle", "0F1 of rank 0"],
                           "hangs.csv", "--json", "--csv", "none.csv", "--svg", "none.svg")
        told = json.loads(done.stdout)
        self.assertFalse(told["legal"])
        self.assertIn("the table hangs", told["errors"][0])
        self.assertEqual(len(told["actions"]), 2)
        for name in ("none.csv", "none.svg"):
            self.assertFalse((self.space.path / name).exists())

    def test_compile_shows_the_same_lines_of_a_table_that_hangs(self):
        self.space.write("hangs.csv", HANGS)
        shown = self.refuse(shell.DATA, [], "hangs.csv").stderr.split("\n", 1)[1]
        done = self.space.refuse(
            shell.SPEC, ['pipeline.schedule: "hangs.csv" is not legal:\n' + shown], "meshwork", "compile",
            "examples/llama-tiny.json", "--spec", "examples/pp2.toml", "--set", "pipeline.schedule=hangs.csv", "--set", "batch.global=8", "--set", "batch.micro=4", "-o", "x.mwplan")
        self.assertNotIn("\\n", done.stderr)

    def test_memory_is_a_limit(self):
        self.json(*self.pipeline("1f1b", "--memory", 4))
        self.refuse(shell.USAGE, ["memory limit 3"], *self.pipeline("1f1b", "--memory", 3))
        self.space.must("meshwork", "schedule", *self.pipeline("gpipe", "--csv", "gpipe.csv"))
        self.refuse(shell.DATA, ["rank 0, action 4 (0F3): exceeds the 3 microbatches"],
                    "gpipe.csv", "--memory", 3)

    def test_wrong_usage(self):
        for needles, arguments in (
                (['unknown schedule "1f2b"', 'did you mean "1f1b"?'], ("1f2b",)),
                (["needs --stages and --microbatches"], ("1f1b",)),
                (["needs --stages and --microbatches"], ("auto", "--stages", 2)),
                (["all print to stdout"], ("legal.csv", "--json", "--csv", "-")),
                (["expected a number above 0"], ("legal.csv", "--memory", "0")),
                (["expected 1 to 16384"], ("1f1b", "--stages", 20000, "--microbatches", 1)),
                (["stages x virtual stages x microbatches"],
                 ("1f1b", "--stages", 16384, "--microbatches", 16384)),
                (["stages x virtual stages x microbatches"],
                 ("auto", "--stages", 2147483647, "--microbatches", 2147483647, "--virtual",
                  2147483647))):
            with self.subTest(arguments):
                self.refuse(shell.USAGE, needles, *arguments)
        for option in ("--stages", "--microbatches", "--virtual"):
            for value in ("0", "-1", "2147483648", "1.5", "many"):
                with self.subTest(option=option, value=value):
                    self.refuse(shell.USAGE, ["a whole number from 1 to 2147483647"], "1f1b",
                                option, value)

    def test_files_that_are_no_schedule(self):
        self.space.write("noise.csv", os.urandom(20000))
        self.refuse(shell.DATA, ["noise.csv"], "noise.csv")
        self.space.write("empty.csv", "")
        self.refuse(shell.DATA, ["found no action"], "empty.csv")
        self.refuse(shell.NO_INPUT, ["missing.csv"], "missing.csv")
        (self.space.path / "folder.csv").mkdir(exist_ok=True)
        self.refuse(shell.DATA, ["is a folder"], "folder.csv")
        self.space.write("huge.csv", "0F0,0B0,0F1048575,0B1048575\n")
        self.refuse(shell.DATA, ["1048575"], "huge.csv")

    def test_no_output_is_an_input(self):
        os.symlink("legal.csv", self.space.path / "link.csv")
        for output in ("legal.csv", "./legal.csv", "link.csv"):
            for option in ("--csv", "--svg"):
                with self.subTest(output=output, option=option):
                    self.refuse(shell.USAGE, ["legal.csv"], "legal.csv", option, output)
                    self.assertEqual(self.space.read("legal.csv"), LEGAL)
        self.refuse(shell.USAGE, ["both.csv"], "legal.csv", "--csv", "both.csv", "--svg",
                    "both.csv")

    def test_outputs_that_cannot_be_written(self):
        self.refuse(shell.CANNOT_CREATE, ["no/such"], "legal.csv", "--csv", "no/such/t.csv")
        self.refuse(shell.CANNOT_CREATE, ["/dev/full"], "legal.csv", "--svg", "/dev/full")
        for options in ("", "--json", "--csv -", "--svg -"):
            done = self.space.run(f"build/bin/meshwork schedule legal.csv {options} > /dev/full")
            self.assertEqual(done.returncode, 74, options + done.stderr)

    def test_a_picture_stands_alone(self):
        name = self.space.write('a<b>&"c".csv', LEGAL)
        self.space.must("meshwork", "schedule", name, "--svg", "t.svg")
        root = xml.fromstring(self.space.read("t.svg"))
        width = float(root.get("width"))
        for line in root.iter("{http://www.w3.org/2000/svg}text"):
            self.assertLess(float(line.get("x")) + 6 * len(line.text), width, line.text)
        titles = [title.text for title in root.iter("{http://www.w3.org/2000/svg}title")]
        self.assertIn("1B0, rank 1: 2 to 4", titles)
        self.assertTrue(titles[0].startswith(name))
        self.space.must("meshwork", "schedule", "gpipe", "--stages", 256, "--microbatches", 512,
                        "--svg", "large.svg")
        self.assertLess((self.space.path / "large.svg").stat().st_size, 10 << 20)
        self.assertIn("are left out", self.space.read("large.svg"))

    def test_examples(self):
        tables = sorted(EXAMPLES.glob("*.csv"))
        self.assertGreater(len(tables), 0)
        for table in tables:
            with self.subTest(table.name):
                told = self.json(f"examples/schedules/{table.name}", "--costs",
                                 "examples/schedules/profile.toml")
                self.assertTrue(told["legal"])
                self.assertLess(told["bubble_fraction"], 0.5)

    def test_it_is_fast(self):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.json("interleaved-1f1b", "--stages", 16, "--virtual", 4, "--microbatches", 128)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.assertLess(after.ru_utime - before.ru_utime, 10)  # 0.1 of a processor that does nothing else


if __name__ == "__main__":
    unittest.main()
