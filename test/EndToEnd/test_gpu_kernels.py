"""What reading the assembly of real shapes tells, without a GPU: each kernel that moves more than 1 MiB keeps its
registers, leaves room for other warps, and moves 4 bytes a thread and more. And the table of a layer's launches."""
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import shell

sys.path.insert(0, str(shell.ROOT / "test" / "Gpu"))
import layers  # noqa: E402

PTXAS = shutil.which("ptxas") or shutil.which("ptxas", path="/usr/local/cuda/bin")
REGISTERS, WARP = 65536, 32  # of a multiprocessor

# What may touch less than 4 bytes a thread, by its instruction: (list, text of the line), loads, stores, and why.
# A number is of places in the assembly.
NARROW = [
    (("backward", "x50257xbf16"), 1, 8, "ends of odd rows; the target's logit, one element a row"),
    (("backward", "x32000xbf16"), 1, 0, "the target's logit, one element a row"),
    (("update", " more like it"), 2, 0, "squares of gradients: tensors of a few KiB, the end of an odd one"),
]
# Warps for which registers must leave room on a multiprocessor, where they are fewer than WARPS.
WARPS = 12
FEW_WARPS = [
    (r"schedule\.attention", 8, "tiles of scores and sums of products stay in registers"),
    (r"memref<\d+x(1600|2048)xf32", 8, "the gradient of a norm keeps its row and the sums of its chunk"),
]


def assembled(text):
    """PTX, and {kernel: (threads of a block, registers, bytes of local memory)}."""
    with tempfile.NamedTemporaryFile("w", suffix=".mlir") as module:
        module.write(text)
        module.flush()
        done = subprocess.run([shell.BIN / "meshwork-opt", module.name, "-o", "/dev/null",
                               "-codegen-emit-cuda-code=arch=sm_90a assemble=1"],
                              capture_output=True, text=True, check=True)
    told = re.findall(r"^(\w+) sm_90a: grid \d+ block (\d+).*registers (\d+) spill bytes (\d+)$", done.stderr, re.M)
    return done.stdout, {kernel: tuple(map(int, numbers)) for kernel, *numbers in told}


def narrow(body):
    """Loads and stores of global memory of less than 4 bytes a thread, in places."""
    counts = {"ld": 0, "st": 0}
    for kind, vector, bits in re.findall(
            r"^\s*(?:@!?%p\d+\s+)?(ld|st)\.(?:[\w:]+\.)*?global\.(?:[\w:]+\.)*?(?:v(\d)\.)?[busf](\d+)\s", body, re.M):
        counts[kind] += int(vector or 1) * int(bits) < 32
    return counts["ld"], counts["st"]


def bodies(ptx):
    return {body[1]: body[0] for body in re.finditer(r"\.entry (\w+)\(.*?^\}", ptx, re.M | re.S)}


def of_kernels(instructions):
    """{kernel: its instruction with the most traffic}; those of a library's operation are found by its name."""
    most = {}
    for one in instructions:
        key = one.kernel or one.operation
        if key not in most or most[key].bytes < one.bytes:
            most[key] = one
    return most


class Kernels(unittest.TestCase):
    def setUp(self):
        self.used = set()

    def check_widths(self, one, found):
        most = (0, 0)
        for number, ((name, text), loads, stores, _) in enumerate(NARROW):
            if one.list == name and text in one.line and found != most:
                most = (loads, stores)
                self.used.add(number)
        self.assertLessEqual(found[0], most[0], "loads of less than 4 bytes a thread")
        self.assertLessEqual(found[1], most[1], "stores of less than 4 bytes a thread")

    def check_kernel(self, one, body, used):
        threads, registers, spilled = used
        self.assertEqual(spilled, 0, "bytes spilled")
        self.assertNotIn(".local", body)
        warps = REGISTERS // (registers * threads) * (threads // WARP)
        least = next((warps for pattern, warps, _ in FEW_WARPS if re.search(pattern, one.line)), WARPS)
        self.assertGreaterEqual(warps, least, f"{registers} registers, {threads} threads")
        self.check_widths(one, narrow(body))

    def check_plan(self, text):
        """How many kernels moved more than 1 MiB."""
        ptx, resources = assembled(text)
        instructions, texts = of_kernels(layers.instructions(text)), bodies(ptx)
        self.assertEqual(set(texts), set(resources))
        large = 0
        for kernel, used in resources.items():
            one = instructions.get(kernel) or instructions[max(filter(kernel.startswith, instructions), key=len)]
            if one.bytes > layers.MIB:
                with self.subTest(kernel=kernel, instruction=one.name):
                    self.check_kernel(one, texts[kernel], used)
                large += 1
        return large

    @unittest.skipUnless(PTXAS, "found no ptxas in PATH or /usr/local/cuda/bin")
    def test_registers_and_widths_of_real_shapes(self):
        for model in layers.MODELS:
            for precision in layers.PRECISIONS:
                with self.subTest(model=model, precision=precision):
                    self.assertGreater(self.check_plan(layers.memory_form(model, precision, 2)), 15)
        self.assertEqual(self.used, set(range(len(NARROW))), "an exception that nothing needs")

    def test_narrow_accesses_are_counted(self):
        """Every form in which the compiler writes them, and none that is wide or not of global memory."""
        wide = ["ld.global.v4.b32 {%r1}, [%rd1];", "st.global.v2.b16 [%rd1], {%rs1, %rs2};", "ld.shared.b16 %rs1, [%r1];",
                "ld.param.b8 %rs1, [p];", "ld.global.nc.v4.b8 {%rs1}, [%rd1];", "st.global.b64 [%rd1], %rd2;"]
        thin = ["ld.global.b16 %rs1, [%rd1];", "@%p1 ld.global.nc.b8 %rs1, [%rd1];", "ld.volatile.global.u16 %rs1, [%rd1];",
                "ld.relaxed.gpu.global.L1::no_allocate.v2.b8 {%rs1, %rs2}, [%rd1];"]
        self.assertEqual(narrow("\n".join(f"\t{x}" for x in wide)), (0, 0))
        self.assertEqual(narrow("\n".join(f"\t{x}" for x in [*wide, *thin, "st.global.b8 [%rd1], %rs1;"])), (4, 1))


class Table(unittest.TestCase):
    def test_the_table_is_what_plans_have(self):
        self.assertEqual(layers.written(layers.README.read_text()), layers.rows(),
                         "python3 test/Gpu/layers.py --write brings it up to date")


if __name__ == "__main__":
    unittest.main()
