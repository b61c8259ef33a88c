"""Machine files: what plans are made for."""
import json
import unittest

import shell

COMPILE = ("meshwork", "compile", "examples/llama-tiny.json", "--spec")


class MachineOfAPlan(unittest.TestCase):
    def setUp(self):
        self.space = shell.Shell()
        self.addCleanup(self.space.close)

    def write(self, name, folder="", **changed):
        """A machine with these figures, and a spec in its folder that names it."""
        text = (shell.ROOT / "examples" / "machines" / "xeon-2.toml").read_text()
        for key, value in changed.items():
            text = "\n".join(f"{key} = {value}" if line.startswith(key + " ") else line for line in text.splitlines())
        (self.space.path / folder).mkdir(exist_ok=True)
        return self.space.write(f"{folder}{name}", text)

    def plan(self, *options):
        self.space.must(*COMPILE, "examples/zero3.toml", *options, "-o", "a.mwplan")
        return (self.space.path / "a.mwplan").read_bytes()

    def test_the_figures_are_in_the_plan_and_the_path_is_not(self):
        self.write("m.toml")
        self.write("other.toml", "folder/")
        first = self.plan("--set", "target.machine=m.toml")
        self.assertEqual(first, self.plan("--set", "target.machine=folder/other.toml"))
        self.assertNotIn(b"m.toml", first)
        self.write("m.toml", f32="1e12")
        self.assertNotEqual(first, self.plan("--set", "target.machine=m.toml"))

    def test_a_run_knows_the_peak_of_the_machine(self):
        """Of all ranks together; xeon-2's two cores are shared by the two ranks."""
        def metrics(*options):
            self.plan("--set", 'mesh.axes=["dp=2"]', *options)
            self.space.must("meshwork-run", "a.mwplan", "--data", "README.md", "--tokenizer", "bytes", "--steps", 1,
                            "--metrics", "m.jsonl")
            line = json.loads(self.space.read("m.jsonl"))
            (self.space.path / "m.jsonl").unlink()
            return line
        self.assertIsNone(metrics()["mfu"])
        self.write("m.toml", bf16="2e11")
        line = metrics("--set", "target.machine=m.toml")
        flops = json.loads(self.space.must("meshwork", "explain", "a.mwplan", "--json").stdout)["flops_per_step"]
        self.assertAlmostEqual(line["mfu"] / (flops / (line["step_ms"] * 1e-3) / 2e11), 1, delta=1e-3)
        # What products reach is for estimates; MFU is by the peak of the data sheet.
        self.space.write("m.toml", self.space.read("m.toml") + "\n[peak]\nbf16 = 5e11\n")
        line = metrics("--set", "target.machine=m.toml")
        self.assertAlmostEqual(line["mfu"] / (flops / (line["step_ms"] * 1e-3) / 5e11), 1, delta=1e-3)

    def test_a_path_begins_in_the_folder_of_the_spec(self):
        self.write("m.toml", "folder/")
        spec = (shell.ROOT / "examples" / "dp1.toml").read_text() + '\n[target]\nmachine = "m.toml"\n'
        self.space.write("folder/s.toml", spec)
        self.space.must(*COMPILE, "folder/s.toml", "-o", "a.mwplan")
        shown = self.space.must(*COMPILE, "folder/s.toml", "--print-config").stdout
        self.assertIn('machine = "m.toml"  # folder/s.toml:', shown)
        self.space.write("s.toml", spec)
        self.space.refuse(shell.NO_INPUT, ["s.toml:", "target.machine", "m.toml"], *COMPILE, "s.toml", "-o", "a.mwplan")

    def test_mistakes_are_told_together_and_no_plan_is_left(self):
        self.write("m.toml", f32="-1", bandwidth="inf", latency='"slow"', cores="2\nf64 = 3")
        self.space.refuse(shell.SPEC, ["m.toml:", "flops.f32: found -1, expected", "memory.bandwidth: found inf",
                                       'latency: found "slow"', "unknown key f64"],
                          *COMPILE, "examples/dp2.toml", "--set", "target.machine=m.toml", "-o", "b.mwplan")
        self.space.refuse(shell.SPEC, ["target.machine", '"a100x8"', 'did you mean "xeon-2"?'],
                          *COMPILE, "examples/dp2.toml", "--set", "target.machine=xeon-3", "-o", "b.mwplan")
        self.space.refuse(shell.SPEC, ["target.machine", "cuda", "target.device"],
                          *COMPILE, "examples/dp2.toml", "--set", "target.machine=h100x8", "-o", "b.mwplan")
        self.assertFalse((self.space.path / "b.mwplan").exists())

    def test_overlap_does_not_take_the_cores_that_compute(self):
        """By itself nowhere on CPUs, unless the machine says that data moves by something else."""
        def waits(overlap, *options):
            self.space.must(*COMPILE[:2], "examples/llama-bytes.json", "--spec", "examples/zero3.toml", *options,
                            "--set", f"overlap.collectives={overlap}", "--compile-to=schedule", "-o", "a.mlir")
            return self.space.read("a.mlir").count("schedule.wait")

        self.write("m.toml", takes_cores="false")
        never, auto, always = (waits(mode) for mode in ("never", "auto", "always"))
        self.assertEqual((never, auto), (0, 0))
        self.assertGreater(always, 0)
        self.assertEqual(waits("auto", "--set", "target.machine=xeon-2"), 0)
        self.assertGreater(waits("auto", "--set", "target.machine=m.toml", "--set", "batch.micro=4"), 0)


class MeasuredMachine(unittest.TestCase):
    cost_s = 30

    def setUp(self):
        self.space = shell.Shell()
        self.addCleanup(self.space.close)

    def links(self):
        return [line for line in self.space.read("m.toml").splitlines() if line.startswith("[link")]

    def test_runs_alone_and_under_mpirun_complete_each_other(self):
        told = self.space.must("meshwork-run", "--measure-machine", "m.toml").stdout
        self.assertRegex(told, r"cores: f32 \d+ and bf16 \d+ Gflop/s, memory [\d.]+ GB/s")
        self.assertEqual(self.links(), ["[link.in_process]"])
        # A step's work has a rate for each kind.
        for key in ("flops\\]\nf32", "attention\\]\nf32", "half_size", "kernels"):
            self.assertRegex(self.space.read("m.toml"), rf"{key} = \d")
        # Attention's gradient too, unless it is as fast to three digits.
        self.assertRegex(told, r"attention: f32 \d+ and bf16 \d+ Gflop/s, backward \d+ and \d+; kernels")
        self.assertIn("[attention.backward]", self.space.read("m.toml"))
        self.space.write("m.toml", self.space.read("m.toml").replace("capacity = 0.0", "capacity = 8e9"))
        self.space.must("mpirun", "--oversubscribe", "-n", "2", str(shell.BIN / "meshwork-run"),
                        "--measure-machine", "m.toml")
        self.assertEqual(self.links(), ["[link.in_process]", "[link.within_node]"])
        self.assertRegex(self.space.read("m.toml"), r"capacity = 8(e\+?0?9|0{9})")
        self.space.must(*COMPILE, "examples/dp2.toml", "--set", "target.machine=m.toml", "-o", "a.mwplan")
        self.assertIn("Estimated time on measured: ", self.space.must("meshwork", "explain", "a.mwplan").stdout)

    def test_what_is_no_machine_file_is_left_as_it_is(self):
        self.space.write("m.toml", "a = 1\n")
        self.space.refuse(shell.CANNOT_CREATE, ['"m.toml" is there and is no machine file', "m.toml: error: "],
                          "meshwork-run", "--measure-machine", "m.toml")
        self.assertEqual(self.space.read("m.toml"), "a = 1\n")

    def test_options_of_a_run_have_no_meaning(self):
        self.space.refuse(shell.USAGE, ["--steps", "--measure-machine"],
                          "meshwork-run", "--measure-machine", "m.toml", "--steps", "3")
        self.space.refuse(shell.USAGE, ["PLAN", "--measure-machine"],
                          "meshwork-run", "--measure-machine", "m.toml", "a.mwplan")
        self.space.refuse(shell.USAGE, ["PLAN is required"], "meshwork-run", "--threads", "1")


if __name__ == "__main__":
    unittest.main()
