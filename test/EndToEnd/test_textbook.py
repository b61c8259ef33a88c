"""examples/textbook: closed forms are what plans say, runs measure it, and the table of its README is that."""
import re
import subprocess
import sys
import unittest

import shell

FOLDER = shell.ROOT / "examples" / "textbook"
sys.path.insert(0, str(FOLDER))
import claims  # noqa: E402
import textbook  # noqa: E402

# Of a table that others have written: by how much their measured values may differ.
OTHER_RUN = 0.3


class Textbook(unittest.TestCase):
    cost_s = 40

    @classmethod
    def setUpClass(cls):
        cls.found = textbook.numbers_of(claims.CLAIMS)

    def test_plans_are_what_the_forms_say(self):
        for one, closed, planned, _ in self.found:
            with self.subTest(one.title):
                self.assertAlmostEqual(planned / closed, 1, delta=1e-9)

    def test_runs_measure_it(self):
        for one, _, planned, measured in self.found:
            with self.subTest(one.title):
                if measured is None:
                    self.skipTest("no network of its own is to be had")
                self.assertLessEqual(planned * (1 - one.within), measured)
                self.assertLessEqual(measured, planned * (1 + one.within) + one.more)

    def test_the_table_is_of_these_numbers(self):
        lines = textbook.TABLE.search(textbook.README.read_text()).group().splitlines()
        made = textbook.table([textbook.row(*numbers) for numbers in self.found]).splitlines()
        self.assertEqual(len(lines), len(made))
        claims_of = [None, None, *(one for one, *_ in self.found)]  # behind two lines of a header
        for one, line, fresh in zip(claims_of, lines, made, strict=True):
            there, now = (text.strip("| ").split(" | ") for text in (line, fresh))
            self.assertEqual(there[:-1], now[:-1], "textbook.py --write makes the table anew")
            if re.fullmatch(r"[\d,.]+", there[-1]) and now[-1] != "-":
                then, measured = (float(cells[-1].replace(",", "")) for cells in (there, now))
                # A process of another machine has other pages and other code.
                self.assertAlmostEqual(then, measured, delta=OTHER_RUN * measured + one.more)

    def test_each_spec_has_a_claim(self):
        self.assertEqual({path.stem for path in FOLDER.glob("*.toml")}, {one.spec for one in claims.CLAIMS})
        self.assertEqual({path.stem for path in FOLDER.glob("*.json")}, {one.model for one in claims.CLAIMS})

    def test_a_wrong_name_is_told(self):
        done = subprocess.run([sys.executable, FOLDER / "textbook.py", "zero4"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("no claim has the spec zero4; expected some of 1f1b", done.stderr)


if __name__ == "__main__":
    unittest.main()
