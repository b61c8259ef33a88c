"""--measure-device cuda: what GPUs do, as a machine file. They are emulated, so times mean nothing here."""
import re
import tomllib
import unittest

import hosts
from job import MPIRUN
from launched import Launched
from shell import BIN, CANNOT_CREATE, USAGE, Shell

RUN = str(BIN / "meshwork-run")
EMULATOR = BIN.parent / "emulator"
LACKING = 69
COMPILE = "build/bin/meshwork compile examples/llama-tiny.json --spec examples/dp2.toml --set target.device=cuda " \
          "--set target.machine=m.toml"


UNDER_MPIRUN = " ".join([*MPIRUN, "-n", "2"])
WHY_NOT = hosts.why_not()
CUBLASLT = ["libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"]


@unittest.skipUnless((EMULATOR / "libcuda.so.1").exists(), "the emulated GPU is not built")
class MeasuredGpus(unittest.TestCase):
    cost_s = 30

    def setUp(self):
        self.shell = self.space = Shell()
        self.addCleanup(self.space.close)

    def emulated(self, devices=1, capability="8.0", libraries=EMULATOR):
        return {"LD_LIBRARY_PATH": str(libraries), "MESHWORK_EMULATOR_DEVICES": str(devices),
                "MESHWORK_EMULATOR_CC": capability, "MESHWORK_CACHE_DIR": ""}

    def line(self, launcher="", **how):
        variables = " ".join(f"{name}={value}" for name, value in self.emulated(**how).items())
        return f"{variables} {launcher} {RUN} --measure-machine m.toml --measure-device cuda"

    def measure(self, launcher="", **how):
        """What is told, and the figures of the file."""
        told = self.space.must(self.line(launcher, **how)).stdout
        self.assertTrue(told.endswith("written to m.toml\n"), told)
        return told, tomllib.loads(self.space.read("m.toml"))

    def broken(self, *names):
        """Where these are no libraries, and the others are the emulated ones."""
        folder = self.space.path / names[0]
        folder.mkdir()
        for name in names:
            (folder / name).write_text("no library")
        return f"{folder}:{EMULATOR}"

    def refused(self, code, needle, launcher="", **how):
        done = self.space.run(self.line(launcher, **how))
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertIn(needle, done.stderr)
        self.assertFalse((self.space.path / "m.toml").exists())

    def test_one_gpu_by_itself(self):
        told, machine = self.measure()
        self.assertRegex(told, r"^1 GPU, 1 on each node: .*compute capability 8\.0")
        self.assertEqual((machine["device"], machine["arch"], machine["ranks_per_node"]), ("cuda", "sm_80", 1))
        for figure in (machine["flops"]["f32"], machine["flops"]["bf16"], machine["memory"]["bandwidth"],
                       machine["launch"]["overhead"], machine["link"]["host"]["bandwidth"],
                       machine["link"]["host"]["latency"]):
            self.assertGreater(figure, 0)
        self.assertEqual(machine["memory"]["kernels"], machine["memory"]["bandwidth"])
        self.assertNotIn("products", machine)
        # What has no products of 8 bits, and a link that nothing was sent over.
        self.assertEqual(machine["flops"]["fp8"], machine["flops"]["bf16"])
        for what in ("flops.fp8 is", "memory.kernels is", "attention.bf16 is", "link between_nodes: 20.0 us, 50 GB/s: a guess"):
            self.assertIn(f"not measured: {what}", told)
            self.assertIn(f"# not measured: {what}", self.space.read("m.toml"))

    def test_compute_capability_9_0_has_more(self):
        """Products of 8 bits, and kernels for attention."""
        told, machine = self.measure(capability="9.0")
        self.assertEqual(machine["arch"], "sm_90a")
        self.assertIn(f"fp8 {machine['flops']['fp8'] / 1e12:.3g} Tflop/s; half of that at ", told)
        self.assertIn(f"\nattention in bf16: {machine['attention']['bf16'] / 1e12:.3g} Tflop/s, its gradient ", told)
        self.assertNotIn("attention.bf16", told)
        self.assertNotIn("fp8 is", told)

    def test_plans_are_made_for_what_was_measured(self):
        told, machine = self.measure(devices=2)
        self.assertRegex(told, r"^2 GPUs, 2 on each node")
        self.assertEqual(list(machine["link"]), ["within_node", "host"])
        self.assertRegex(told, r"link within_node: [\d.]+ us, ")
        self.space.must(f"{COMPILE} -o a.mwplan")
        self.assertIn("Estimated time on measured: ", self.space.must("meshwork", "explain", "a.mwplan").stdout)

    def test_under_mpirun_what_was_there_is_completed(self):
        _, before = self.measure()
        kept = {"capacity = 0.0": "capacity = 7e10", "[launch]": "[peak]\nbf16 = 9e14\n[launch]",
                "[attention]\n": "[attention]\nhalf_keys = 230.0\n", "name = \"measured\"": "name = \"mine\""}
        text = self.space.read("m.toml")
        for old, new in kept.items():
            text = text.replace(old, new)
        bf16 = before["attention"]["bf16"]
        self.space.write("m.toml", re.sub(r"(\[attention\][^[]*bf16 = )\S+", r"\g<1>3e14", text))
        told, after = self.measure(UNDER_MPIRUN, devices=2)
        self.assertEqual(after["ranks_per_node"], 2)
        self.assertEqual(list(after["link"]), ["within_node", "host"])  # no guess any more
        self.assertEqual((after["name"], after["memory"]["capacity"], after["peak"]["bf16"]), ("mine", 7e10, 9e14))
        self.assertEqual((after["attention"]["bf16"], after["attention"]["half_keys"]), (3e14, 230))
        self.assertNotEqual(bf16, 3e14)
        self.assertEqual(after["attention"]["f32"], after["flops"]["f32"])  # it said nothing of that
        self.assertIn("attention.bf16 is 300 Tflop/s, as it was: the GPU has compute capability 8.0, expected 9.0", told)
        # One GPU alone leaves the link and the number of ranks.
        _, again = self.measure()
        self.assertEqual((again["ranks_per_node"], again["link"]["within_node"]), (2, after["link"]["within_node"]))

    def test_tiles_of_a_file_give_way(self):
        """half_size says the same in another way, and a file may not have both."""
        shipped = (self.space.path / "examples" / "machines" / "h100x8.toml").read_text()
        self.space.write("m.toml", shipped)
        _, machine = self.measure()
        self.assertNotIn("products", machine)
        self.assertIn("half_size", machine["flops"])
        self.assertEqual(machine["link"]["within_node"]["bandwidth"], 362e9)
        self.assertEqual(machine["memory"]["kernels"], 2.6e12)
        self.assertEqual((machine["node"]["adapters"], machine["peak"]["fp8"]), (8, 1979e12))

    def test_what_is_missing_is_told(self):
        self.refused(LACKING, 'device "cuda" needs an NVIDIA GPU and its driver', libraries=self.broken("libcuda.so.1"))
        self.refused(LACKING, "cannot open libcublasLt.so", libraries=self.broken(*CUBLASLT))
        without = self.broken("libnccl.so.2")
        self.refused(LACKING, "cannot open libnccl.so.2", libraries=without, devices=2)
        self.refused(LACKING, "expected compute capability 8.0 or newer", capability="7.5")
        self.refused(LACKING, "GPU", UNDER_MPIRUN, devices=1)
        self.measure(libraries=without)  # a GPU alone sends nothing

    def test_a_file_of_another_device_is_left(self):
        text = (self.space.path / "examples" / "machines" / "xeon-2.toml").read_text()
        self.space.write("m.toml", text)
        done = self.space.run(self.line())
        self.assertEqual(done.returncode, CANNOT_CREATE, done.stderr)
        self.assertIn('"m.toml" is there and is no machine file of device "cuda"', done.stderr)
        self.assertEqual(self.space.read("m.toml"), text)

    def test_mistakes_of_options(self):
        def refuse(needle, *options):
            self.space.refuse(USAGE, [needle], "meshwork-run", *options)
        refuse("--measure-device requires --measure-machine", "--measure-device", "cuda")
        refuse("--measure-device requires --measure-machine", "a.mwplan", "--measure-device", "cuda")
        refuse("gpu not in {cpu,cuda}", "--measure-machine", "m.toml", "--measure-device", "gpu")
        for option in (["--threads", "2"], ["--no-pin"]):
            refuse(f"--measure-device cuda excludes {option[0]}", "--measure-machine", "m.toml", "--measure-device",
                   "cuda", *option)
        for option in (["--steps", "3"], ["--share-gpu"], ["--ranks", "2"]):
            refuse(f"--measure-machine excludes {option[0]}", "--measure-machine", "m.toml", "--measure-device", "cuda",
                   *option)
        refuse('--measure-machine "-"', "--measure-machine", "-", "--measure-device", "cuda")

    @unittest.skipIf(WHY_NOT, WHY_NOT)
    def test_two_hosts_with_two_ranks_each(self):
        """Both kinds of links at once; ranks of a host share what leads out of it."""
        network = hosts.Network(self, 2)
        codes, said = Launched(self, range(4), RUN, "--measure-machine", "m.toml", "--measure-device", "cuda",
                               within=network.spread(4), MASTER_ADDR=network.address(0),
                               **self.emulated(devices=4)).finish()
        self.assertEqual(codes, [0] * 4, said)
        self.assertIn("4 GPUs, 2 on each node", said)
        machine = tomllib.loads(self.space.read("m.toml"))
        self.assertEqual((machine["ranks_per_node"], machine["node"]["adapters"]), (2, 2))
        self.assertEqual(list(machine["link"]), ["within_node", "between_nodes", "host"])


if __name__ == "__main__":
    unittest.main()
