"""The parts of ./dev that need no build."""
import contextlib
import importlib.util
import io
import os
import subprocess
import unittest

import shell

DEV = str(shell.ROOT / "dev")


def load_runner():
    spec = importlib.util.spec_from_file_location("run", shell.ROOT / "test" / "run.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Dev(unittest.TestCase):
    def setUp(self):
        self.space = shell.Shell()
        self.addCleanup(self.space.close)

    def test_help_and_usage(self):
        self.assertIn("quickstart", self.space.must(DEV, "help").stdout)
        self.space.refuse(shell.USAGE, ["usage"], DEV, "nonsense")
        self.space.refuse(1, ["unknown preset 'nonsense'"], DEV, "build", "nonsense")
        self.space.refuse(1, ["seconds is 'long'", "expected a positive number"], DEV, "fuzz", "long")

    def test_no_package_is_listed_twice(self):
        lines = (shell.ROOT / "dev").read_text()
        body = lines[lines.index("build_packages=("):lines.index("\nsay()")]
        self.assertIn("libmlir-22-dev", body)
        done = self.space.must(
            f"source <(sed -n '/^build_packages/,/^format_packages/p' '{DEV}'); "
            "printf '%s\\n' \"${build_packages[@]}\" | sort | uniq -d")
        self.assertEqual(done.stdout, "")

    def test_ci_is_what_a_person_runs(self):
        text = (shell.ROOT / ".ci" / "run").read_text()
        self.assertIn("exec ./dev test", text)
        self.assertTrue(os.access(shell.ROOT / ".ci" / "run", os.X_OK))


class Runner(unittest.TestCase):
    """Tests that fail, crash or are missing are counted as what they are."""

    def setUp(self):
        self.run = load_runner()
        self.space = shell.Shell()
        self.addCleanup(self.space.close)
        self.run.ROOT = self.space.path
        quiet = contextlib.redirect_stdout(io.StringIO())
        quiet.__enter__()
        self.addCleanup(quiet.__exit__, None, None, None)

    def unittests(self, body):
        (self.space.path / "t").mkdir()
        self.space.write("t/test_x.py", "import os, unittest\nclass T(unittest.TestCase):\n"
                         + "".join(f"  def test_{i}(self): {line}\n"
                                   for i, line in enumerate(body)))
        return self.run.unittests("t")

    def expect(self, result, passed, failed, skipped):
        self.assertEqual((result.passed, len(result.failed), result.skipped), (passed, failed, skipped), result)

    def test_unittest_counts(self):
        body = ["print('fine')", "print('seen'); self.fail('no')", "1 / 0", "self.skipTest('')",
                "\n   with self.subTest(3): self.fail()"]
        result = self.unittests(body)
        self.expect(result, 1, 3, 1)
        texts = dict(result.failed)
        self.assertRegex(texts["FAIL: test_1 (test_x.T.test_1)"], r"(?s)AssertionError: no.*seen")
        self.assertIn("ZeroDivisionError", texts["ERROR: test_2 (test_x.T.test_2)"])
        self.assertNotIn("fine", str(texts))

    def test_a_crash_is_a_failure(self):
        self.expect(self.unittests(["pass", "os._exit(0)"]), 0, 1, 0)

    def test_no_test_is_a_failure(self):
        self.expect(self.unittests([]), 0, 1, 0)

    def test_ctest_counts_crashes_and_missing_binaries(self):
        build = self.space.path / "b"
        build.mkdir()
        self.space.write("b/CTestTestfile.cmake",
                         "add_test(good true)\nadd_test(bad false)\n"
                         "add_test(gone /absent/binary)\nadd_test(crash sh -c \"kill -SEGV $$\")\n")
        result = self.run.ctest("b")
        self.expect(result, 1, 3, 0)
        self.assertEqual([name for name, _ in result.failed], ["bad", "gone", "crash"])

    def test_reports_of_googletest_and_lit(self):
        text = """<testsuites><testsuite><testcase name="a" classname="S" status="run"/>
                  <testcase name="b" classname="S" status="run"><failure message="short">the whole</failure></testcase>
                  <testcase name="c" classname="S" status="notrun"/><testcase name="d" classname="S"><skipped/></testcase>
                  </testsuite></testsuites>"""
        result = self.run.junit(self.run.xml.fromstring(text).iter("testcase"))
        self.expect(result, 1, 1, 2)
        self.assertEqual(result.failed, [("S.b", "the whole")])

    def test_exit_code_and_last_line(self):
        done = subprocess.run(
            ["/usr/bin/python3", str(shell.ROOT / "test" / "run.py"), "nonsense"],
            capture_output=True, text=True)
        self.assertEqual(done.returncode, shell.USAGE)
        self.run.STAGES = {"a": lambda: self.run.Result(3, [], 1),
                           "b": lambda: self.run.Result(1, [("T.one", "said 1"), ("T.two", "said 2")])}
        with contextlib.redirect_stdout(io.StringIO()) as out:
            self.assertEqual(self.run.main([]), 1)
            self.assertEqual(self.run.main(["a"]), 0)
        lines = out.getvalue().splitlines()
        self.assertIn("4 passed, 2 failed, 1 skipped", lines)
        self.assertEqual(lines[-1], "3 passed, 0 failed, 1 skipped")
        last = lines[lines.index("4 passed, 2 failed, 1 skipped") - 8:]
        self.assertEqual(last[:5], ["== failed in b: T.one", "said 1", "", "== failed in b: T.two", "said 2"])


if __name__ == "__main__":
    unittest.main()
