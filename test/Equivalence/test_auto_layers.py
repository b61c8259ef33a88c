"""`pipeline.layers = "auto"` under `expect.memory_per_rank`: of the layouts that fit, compiled one by one
here, the one with the least work in its slowest stage; what it computes is what one rank does."""
import itertools
import re
import unittest

import numpy as np

import configs
import tools

SEQUENCE, MICRO, MICROBATCHES, LAYERS, STAGES = 23, 2, 4, 7, 3
MODEL = {**configs.ALL["llama"], "num_hidden_layers": LAYERS}
CORPUS = configs.corpus()


def slowest(layers):
    """In layers, of which the head is about a quarter."""
    return max([*layers[:-1], layers[-1] + 0.25])


class AutoLayers(unittest.TestCase):
    cost_s = 25

    def setUp(self):
        self.space = tools.Workspace()
        self.addCleanup(self.space.close)
        self.model = self.space.model(MODEL)

    def call(self, limit=None, stages=STAGES, policy="none", layers=None, **pipeline):
        """The finished process, and the plan's path."""
        plan = self.space.file(".mwplan")
        sections = {"mesh": {"axes": [f"pp={stages}"]}, "recompute": {"policy": policy},
                    "optimizer": {"clip_grad_norm": 0},
                    "pipeline": {**pipeline, **({"layers": layers} if layers else {})},
                    **({"expect": {"memory_per_rank": f"{limit} B"}} if limit else {})}
        spec = tools.spec(MICROBATCHES * MICRO, MICRO, SEQUENCE, **sections)
        return self.space.call("meshwork", "compile", self.model, "--spec", self.space.write(".toml", spec),
                               "-o", plan), plan

    def compile(self, *args, **options):
        done, plan = self.call(*args, **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stderr, plan

    def peaks(self, plan):
        return [stage["peak"] for stage in self.space.explain(plan)["memory_per_rank_bytes"]["stages"]]

    def layouts(self, stages):
        """Bytes of the rank that needs most, by the layers of all but the last stage."""
        return {layers: max(self.peaks(self.compile(stages=stages, layers=list(layers))[1]))
                for layers in itertools.product(range(1, LAYERS), repeat=stages) if sum(layers) == LAYERS}

    def told(self, text):
        found = re.search(r"meshwork: layers: \[([\d, ]+)\], for expect.memory_per_rank", text)
        return found and tuple(int(count) for count in found[1].split(","))

    def test_it_is_the_best_that_fits(self):
        peaks = self.layouts(STAGES)
        _, balanced = self.compile()
        free = max(self.peaks(balanced))
        self.assertEqual(sorted(self.peaks(balanced)), sorted(self.peaks(self.compile(limit=free)[1])))
        moved = set()
        for limit in sorted({bytes for bytes in peaks.values() if bytes < free}):
            with self.subTest(limit=limit):
                text, plan = self.compile(limit=limit)
                chosen = self.told(text)
                self.assertLessEqual(max(self.peaks(plan)), limit)
                self.assertEqual(peaks[chosen], max(self.peaks(plan)))
                best = min(slowest(layers) for layers, bytes in peaks.items() if bytes <= limit)
                self.assertEqual(slowest(chosen), best)
                moved.add(chosen)
        self.assertTrue(moved)
        nearest = min(peaks, key=peaks.get)
        done, _ = self.call(limit=peaks[nearest] - 1)
        self.assertEqual(done.returncode, 78, done.stderr)
        for words in (f"= {peaks[nearest]} bytes, expected at most", f"pipeline.layers = {list(nearest)}",
                      "changes of the spec"):
            self.assertIn(words, done.stderr)

    def test_with_recompute_the_faster_of_the_two_is_chosen(self):
        """Layers that move, or more that is computed again: against each by itself."""
        limit = max(self.peaks(self.compile(policy="selective")[1])) - 1
        text, plan = self.compile(limit=limit, policy="auto")
        self.assertLessEqual(max(self.peaks(plan)), limit)
        step = self.space.explain(plan)["estimate"]["step_ms"]
        others = [self.space.explain(self.compile(limit=limit, policy="auto", layers=layers)[1])["estimate"]["step_ms"]
                  for layers in ([2, 2, 3], [2, 3, 2])]
        self.assertNotEqual(*others)
        self.assertEqual(step, min(others), text)

    def test_it_computes_what_one_rank_does(self):
        for schedule, virtual in (("1f1b", None), ("interleaved-1f1b", 2), ("zb-v", None)):
            with self.subTest(schedule):
                options = {"schedule": schedule, **({"virtual_stages": virtual} if virtual else {})}
                free = max(self.peaks(self.compile(stages=2, **options)[1]))
                text, plan = self.compile(limit=free - 1, stages=2, **options)
                self.assertLess(max(self.peaks(plan)), free)
                self.assertEqual(sum(self.told(text)), LAYERS)
                _, alone = self.compile(stages=1)
                ours, theirs = (self.space.train(path, CORPUS, 2, "--threads", 1, lr=1e-2) for path in (plan, alone))
                self.assertEqual(ours.losses, theirs.losses)
                for name, weight in theirs.weights.items():
                    np.testing.assert_array_equal(ours.weights[name], weight, name)


if __name__ == "__main__":
    unittest.main()
