"""`zero.gathered = "auto"` and `zero.reduce = "auto"`: of the ways that fit the memory, compiled one by one here, the one
with the least estimated step."""
import itertools
import json
import unittest

import shell

GATHERED = ('"free"', '["fsdp"]', '"keep"')
REDUCE = ('"microbatch"', '"step"')
AUTO = ('"auto"', '"auto"')


class AutoZero(unittest.TestCase):
    cost_s = 60
    model = "examples/llama-tiny.json"

    @classmethod
    def setUpClass(cls):
        cls.space = shell.Shell()
        cls.addClassCleanup(cls.space.close)

    def compile(self, gathered, reduce, budget, *settings):
        keys = ['mesh.axes=["dp=2", "fsdp=2"]', "batch.global=16", "batch.micro=1", "zero.stage=3",
                'zero.axes=["dp", "fsdp"]', f"zero.gathered={gathered}", f"zero.reduce={reduce}",
                f"expect.memory_per_rank={budget} B", *settings]
        return self.space.run("meshwork", "compile", self.model, "--spec", "examples/dp2.toml",
                              *[part for key in keys for part in ("--set", key)], "-o", "a.mwplan")

    def plan(self, *way):
        done = self.compile(*way)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(self.space.must("meshwork", "explain", "a.mwplan", "--json").stdout), done.stderr

    def test_it_is_the_fastest_that_fits(self):
        given = {way: self.plan(*way, 1 << 40)[0] for way in itertools.product(GATHERED, REDUCE)}
        peaks = {way: plan["memory_per_rank_bytes"]["peak"] for way, plan in given.items()}
        chosen = set()
        nearest = min(peaks, key=peaks.get)
        done = self.compile(*AUTO, 1000)
        self.assertEqual(done.returncode, shell.SPEC, done.stderr)
        self.assertIn(f"zero.gathered = {nearest[0]}; zero.reduce = {nearest[1]}; ", done.stderr)
        self.assertIn(f"expect.memory_per_rank: each rank needs {peaks[nearest] / (1 << 20):.2f} MiB", done.stderr)
        for budget in sorted(set(peaks.values())):
            with self.subTest(budget=budget):
                steps = {way: plan["estimate"]["step_ms"] for way, plan in given.items() if peaks[way] <= budget}
                best = min(steps, key=lambda way: (steps[way], peaks[way]))
                found, said = self.plan(*AUTO, budget)
                self.assertIn(f"zero.gathered = {best[0]}; zero.reduce = {best[1]}; a step should take ", said)
                for key in ("memory_per_rank_bytes", "collectives", "estimate"):
                    self.assertEqual(found[key], given[best][key])
                chosen.add(best)
        self.assertGreater(len(chosen), 1)
        # Of one key the other one's value stays.
        found, said = self.plan('"auto"', '"microbatch"', 1 << 40)
        self.assertIn('zero.reduce = "microbatch"; ', said)

    def test_the_error_names_what_would_fit(self):
        """Of larger weights: small ones are gathered together, and the room for that is more than a hierarchy keeps."""
        self.model = self.space.write("wide.json", json.dumps({**json.loads((
            shell.ROOT / self.model).read_text()), "hidden_size": 256, "intermediate_size": 1024}))
        free = self.plan('"free"', '"microbatch"', 1 << 40, "recompute.policy=full")[0]["memory_per_rank_bytes"]["peak"]
        for way, change in (((GATHERED[1], REDUCE[0]), "zero.gathered=free"),
                            ((GATHERED[0], REDUCE[1]), "zero.reduce=microbatch")):
            with self.subTest(change=change):
                done = self.compile(*way, free, "recompute.policy=full")
                self.assertEqual(done.returncode, shell.SPEC, done.stderr)
                self.assertIn(f"--set '{change}' is the cheapest that fits", done.stderr)

    def test_every_way_is_verified(self):
        done = self.space.must("meshwork", "verify", "examples/llama-tiny.json", "--by-running", "--spec",
                               "examples/dp2.toml", *[part for key in (
                                   'mesh.axes=["dp=2", "fsdp=2"]', "zero.stage=3", 'zero.axes=["dp", "fsdp"]',
                                   "batch.global=16", "batch.micro=1", "zero.gathered=auto", "zero.reduce=auto",
                                   "expect.memory_per_rank=1 GiB") for part in ("--set", key)])
        for gathered, reduce in itertools.product(GATHERED, REDUCE):
            self.assertIn(f"zero.gathered {gathered}: zero.reduce {reduce}: 4 ranks compute what", done.stdout)


if __name__ == "__main__":
    unittest.main()
