"""The parts of ./dev that need no build."""
import contextlib
import io
import os
import subprocess
import sys
import unittest
import unittest.mock
import xml.etree.ElementTree as xml

import shell

sys.path.insert(0, str(shell.ROOT / "test"))
import run
from runner import pool, stages

DEV = str(shell.ROOT / "dev")


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
        self.space = shell.Shell()
        self.addCleanup(self.space.close)
        root = unittest.mock.patch.object(stages, "ROOT", self.space.path)
        root.start()
        self.addCleanup(root.stop)
        quiet = contextlib.redirect_stdout(io.StringIO())
        quiet.__enter__()
        self.addCleanup(quiet.__exit__, None, None, None)

    def result(self, units, workers=2):
        row, = pool.run(units, workers)
        return row.result

    def unittests(self, body, quick=False):
        (self.space.path / "t").mkdir()
        self.space.write("t/test_x.py", "import os, unittest\nclass T(unittest.TestCase):\n  pass\n"
                         + "".join(f"  def test_{i}(self): {line}\n"
                                   for i, line in enumerate(body)) + "class U(T):\n  slow = True\n")
        return self.result(stages.unittests("t", "a", quick))

    def expect(self, result, passed, failed, skipped):
        self.assertEqual((result.passed, len(result.failed), result.skipped), (passed, failed, skipped), result)

    def test_unittest_counts(self):
        body = ["print('fine')", "print('seen'); self.fail('no')", "1 / 0", "self.skipTest('')",
                "\n   with self.subTest(3): self.fail()"]
        result = self.unittests(body, quick=True)
        self.expect(result, 1, 3, 1)
        self.assertEqual(len(result.times), 5)
        texts = dict(result.failed)
        self.assertRegex(texts["FAIL: test_1 (test_x.T.test_1)"], r"(?s)AssertionError: no.*seen")
        self.assertIn("ZeroDivisionError", texts["ERROR: test_2 (test_x.T.test_2)"])
        self.assertNotIn("fine", str(texts))

    def test_a_crash_is_a_failure(self):
        result = self.unittests(["pass", "os._exit(3)"], quick=True)
        self.expect(result, 0, 1, 0)
        self.assertIn("exit code 3", result.failed[0][1])

    def test_after_a_crash_come_the_other_classes(self):
        result = self.unittests(["pass", "'U' in str(self) or os._exit(3)"])
        self.expect(result, 2, 1, 0)

    def test_a_module_that_cannot_be_loaded_is_a_failure(self):
        result = self.unittests(["pass", "pass\nimport absent"])
        self.expect(result, 0, 1, 0)
        self.assertIn("No module named 'absent'", result.failed[0][1])

    def test_what_hangs_is_killed(self):
        with unittest.mock.patch.object(pool, "STAGE_TIMEOUT_S", 1):
            self.expect(self.unittests(["pass", "import time; time.sleep(100)"], quick=True), 0, 1, 0)
            code, _, _ = stages.call(["sh", "-c", "sleep 100 & sleep 100"], 0.1)
            self.assertEqual(code, -9)

    def test_no_test_is_a_failure(self):
        self.expect(self.unittests([]), 0, 1, 0)

    def test_ctest_counts_crashes_and_missing_binaries(self):
        build = self.space.path / "b"
        build.mkdir()
        self.space.write("b/CTestTestfile.cmake",
                         "add_test(good true)\nadd_test(bad false)\n"
                         "add_test(gone /absent/binary)\nadd_test(crash sh -c \"kill -SEGV $$\")\n")
        result = self.result(stages.ctest("b", "a"))
        self.expect(result, 1, 3, 0)
        self.assertEqual({name for name, _ in result.failed}, {"bad", "gone", "crash"})

    def test_what_ctest_is_told_of_a_test(self):
        (self.space.path / "b").mkdir()
        self.space.write("b/CTestTestfile.cmake", """
            add_test(set sh -c "test $WORD = told")
            set_tests_properties(set PROPERTIES ENVIRONMENT "WORD=told" COST 9)
            add_test(late sleep 100)
            set_tests_properties(late PROPERTIES TIMEOUT 0.1 LABELS slow)""")
        self.assertEqual([(unit.name, unit.cost_s) for unit in stages.ctest("b", "a")], [("set", 9), ("late", 1)])
        self.expect(self.result(stages.ctest("b", "a")), 1, 1, 0)
        self.expect(self.result(stages.ctest("b", "a", quick=True)), 1, 0, 0)

    def test_reports_of_googletest_and_lit(self):
        text = """<testsuites><testsuite><testcase name="a" classname="S" status="run"/>
                  <testcase name="b" classname="S" status="run"><failure message="short">the whole</failure></testcase>
                  <testcase name="c" classname="S" status="notrun"/><testcase name="d" classname="S"><skipped/></testcase>
                  </testsuite></testsuites>"""
        result = stages.junit(xml.fromstring(text).iter("testcase"))
        self.expect(result, 1, 1, 2)
        self.assertEqual(result.failed, [("S.b", "the whole")])

    def test_costly_units_begin_first_and_bring_others(self):
        begun = []

        def unit(name, cost_s, more=()):
            def act(*_):
                begun.append(name)
                return pool.Result(passed=1), more
            return pool.Unit("a", name, act, cost_s)

        result = self.result([unit("b", 1), unit("c", 9, [unit("d", 5)]), unit("e", 0)], workers=1)
        self.expect(result, 4, 0, 0)
        self.assertEqual("".join(begun), "cdbe")

    def test_exit_code_and_last_line(self):
        done = subprocess.run(
            ["/usr/bin/python3", str(shell.ROOT / "test" / "run.py"), "nonsense"],
            capture_output=True, text=True)
        self.assertEqual(done.returncode, shell.USAGE)
        def stage(name, *result):
            return lambda _quick: [pool.Unit(name, "unit", lambda *_: pool.Result(*result))]
        found = {"a": stage("a", 3, [], 1), "b": stage("b", 1, [("T.one", "said 1"), ("T.two", "said 2")])}
        with contextlib.redirect_stdout(io.StringIO()) as out, unittest.mock.patch.object(stages, "STAGES", found):
            self.assertEqual(run.main([]), 1)
            self.assertEqual(run.main(["a"]), 0)
        lines = out.getvalue().splitlines()
        self.assertIn("4 passed, 2 failed, 1 skipped", lines)
        self.assertEqual(lines[-1], "3 passed, 0 failed, 1 skipped")
        last = lines[lines.index("4 passed, 2 failed, 1 skipped") - 8:]
        self.assertEqual(last[:5], ["== failed in b: T.one", "said 1", "", "== failed in b: T.two", "said 2"])


if __name__ == "__main__":
    unittest.main()
