"""What `meshwork explain` says about memory: model state to the byte, attention
linear in the sequence, and a run that stays within it."""
import math
import unittest

import configs
import models
import tools


class Memory(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.space = tools.Workspace()
        cls.addClassCleanup(cls.space.close)

    def test_sixteen_bytes_a_parameter(self):
        """Eighteen where gradients of two microbatches are summed, in f32, beside bf16."""
        for name in ("gpt2", "llama"):
            for compute in ("f32", "bf16"):
                for dp in (1, 2):
                    with self.subTest(name, compute=compute, dp=dp):
                        self.check_state(configs.ALL[name], compute, dp)

    def test_bytes_of_what_an_optimizer_keeps(self):
        """The plan's states say it: weight, master where weights are bf16, gradient (f32 where
        two microbatches are summed), and 4 for each state of the optimizer."""
        for keys, kept in (({"kind": "sgd"}, []), ({"kind": "sgd", "momentum": 0.9}, ["momentum"]),
                           ({"kind": "lion"}, ["momentum"]),
                           ({"kind": "adamw"}, ["first_moment", "second_moment"])):
            for compute, dp, fixed in (("f32", 1, 8), ("bf16", 1, 10), ("bf16", 2, 8)):
                with self.subTest(keys, compute=compute, dp=dp):
                    told = self.check_state(configs.GPT2, compute, dp, fixed + 4 * len(kept),
                                            optimizer=keys)
                    for parameter in told["rank_classes"][0]["parameters"]:
                        self.assertEqual(list(parameter), ["name", "file_shape", "weight", "master",
                                                           *kept, "gradient"])

    def check_state(self, config, compute, dp, bytes_each=None, **sections):
        plan = self.space.compile(config, tools.spec(4, 2, 23, dp=dp, compute=compute, **sections))
        told = self.space.explain(plan)
        count = sum(math.prod(s) for s in models.parameter_shapes(config).values())
        self.assertEqual(told["parameters"], count)
        self.assertEqual(told["ranks"], dp)
        memory = told["memory_per_rank_bytes"]
        state = memory["weights"] + memory["gradients"] + memory["optimizer"]
        self.assertEqual(state, (bytes_each or (18 if compute == "bf16" and dp == 1 else 16)) * count)
        self.assertGreater(memory["peak"], state)
        return told

    def long_plan(self, sequence):
        config = {**configs.LLAMA, "max_position_embeddings": 16384, "vocab_size": 61,
                  "num_hidden_layers": 1}
        return self.space.compile(config, tools.spec(1, 1, sequence))

    def test_attention_is_linear_in_the_sequence(self):
        plans = {s: self.long_plan(s) for s in (4096, 8192, 16384)}
        peaks = {s: self.space.explain(p)["memory_per_rank_bytes"]["peak"]
                 for s, p in plans.items()}
        # An s x s matrix would add 256 MiB between the last two and 64 MiB before.
        first, second = peaks[8192] - peaks[4096], peaks[16384] - peaks[8192]
        self.assertAlmostEqual(second / first, 2, delta=0.02)
        run = self.space.train(plans[8192], configs.corpus(61, 8200), 2)
        self.assertTrue(all(math.isfinite(loss) for loss in run.losses))
        measured = max(line["memory_peak_bytes"] for line in run.metrics)
        # Code, stacks, libraries' scratch: not an s x s matrix of 8192 (256 MiB).
        self.assertLess(measured, peaks[8192] + (64 << 20))


if __name__ == "__main__":
    unittest.main()
