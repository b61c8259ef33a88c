"""Orders of microbatches: of one stage gpipe and 1f1b give the same bits, whatever else a spec says,
and gpipe keeps a copy of what lives from forward to backward for each microbatch.
"""
import unittest

import same_bits
import tools

# model, layout, microbatches, precision, recompute, overlap, documents, target
CASES = [
    ("gpt2-dropout", "one", 3, "f32", "none", "never", "separate", "cpu"),
    ("gpt2-dropout", "zero3-tp2", 3, "bf16-stochastic", "selective", "always", "joined", "cpu"),
    ("llama", "zero1-tp2", 3, "bf16", "full", "always", "separate", "cpu"),
    ("qwen3", "zero2", 3, "f32", "selective", "always", "joined", "cpu"),
    ("gpt2-dropout", "zero3", 3, "f32", "full", "always", "joined", "mpi"),
    ("gpt2-dropout", "zero1", 3, "bf16", "selective", "always", "joined", "gpu"),
]
SAME = ("loss", "grad_norm", "weights", "gradients")


class Schedules(unittest.TestCase):
    def record(self, values, schedule):
        case = same_bits.Case(*values)
        case.sections["pipeline"] = {"schedule": schedule}
        return case.record(self.space)

    def test_gpipe_has_the_bits_of_1f1b(self):
        with tools.Workspace(LD_LIBRARY_PATH=str(tools.BIN.parent / "emulator")) as self.space:
            for values in CASES:
                with self.subTest("/".join(map(str, values))):
                    one, all_forward = (self.record(values, name) for name in ("1f1b", "gpipe"))
                    self.assertEqual({key: one[key] for key in SAME}, {key: all_forward[key] for key in SAME})
                    self.assertGreater(all_forward["peak_bytes"], one["peak_bytes"])

    def test_activations_grow_with_microbatches_under_gpipe_alone(self):
        with tools.Workspace() as self.space:
            def activations(schedule, microbatches):
                case = same_bits.Case("gpt2", "one", microbatches, "f32", "none", "never", "joined", "cpu")
                case.sections["pipeline"] = {"schedule": schedule}
                plan = case.plan(self.space)
                return self.space.explain(plan)["memory_per_rank_bytes"]["activations"]
            self.assertEqual(activations("1f1b", 2), activations("1f1b", 8))
            two, four, eight = (activations("gpipe", m) for m in (2, 4, 8))
            self.assertEqual(eight - four, 2 * (four - two))
            self.assertGreater(four, two)


if __name__ == "__main__":
    unittest.main()
