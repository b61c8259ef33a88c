"""A model of 405 thousand million parameters on 16 384 ranks: what a compilation costs depends
on the model, not on the ranks."""
import json
import resource
import unittest

import shell

# The shape of Llama 3.1 405B (Grattafiori et al., arXiv 2407.21783).
CONFIG = json.loads((shell.ROOT / "test" / "EndToEnd" / "llama-405b.json").read_text())
SPEC = """[mesh]
axes = ["dp={ranks}", "tp=8"]
[shard]
residual_sequence = ["tp"]
[zero]
stage = 3
[batch]
global = {ranks}
micro = 1
sequence = 8192
"""
STAGES = """[mesh]
axes = ["pp=16", "dp={ranks}", "tp=8"]
[shard]
residual_sequence = ["tp"]
[zero]
stage = 1
[batch]
global = {batch}
micro = 1
sequence = 8192
[pipeline]
schedule = "interleaved-1f1b"
virtual_stages = 4
"""
TINY = {"vocab_size": 259, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1,
        "num_attention_heads": 2, "num_key_value_heads": 2, "max_position_embeddings": 1 << 20}
LONG = """[mesh]
axes = ["tp=2"]
[batch]
global = 1
micro = 1
sequence = {tokens}
"""


class Scale(unittest.TestCase):
    def test_plans_do_not_grow_with_ranks(self):
        space = shell.Shell()
        self.addCleanup(space.close)
        space.write("large.json", json.dumps(CONFIG))
        sizes = {}
        for ranks in (2, 2048):
            space.write("spec.toml", SPEC.format(ranks=ranks))
            space.must("meshwork", "compile", "large.json", "--spec", "spec.toml", "-o",
                       "large.mwplan")  # Within shell.TIMEOUT_S; alone it takes a few seconds.
            sizes[ranks] = (space.path / "large.mwplan").stat().st_size
        self.assertLess(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, 3 << 20)  # KiB
        self.assertLess(abs(sizes[2] - sizes[2048]), sizes[2] / 100, sizes)
        told = json.loads(space.must("meshwork", "explain", "large.mwplan", "--json").stdout)
        self.assertEqual(told["ranks"], 2048 * 8)
        self.assertEqual(told["parameters"], 405_853_388_800)
        # Six flops a token and weight of a matmul, and the attention, over 2048 sequences.
        tokens, table = 2048 * 8192, 128256 * 16384
        self.assertGreater(told["flops_per_step"], 6 * tokens * (405_853_388_800 - 2 * table))
        self.assertLess(told["flops_per_step"], 7 * tokens * 405_853_388_800)
        page, data = self.page(space)
        self.assertLess(len(page), 2.5e6)
        # All layers are one row; only the embedding, the last norm and the head stand alone.
        self.assertEqual({row["count"] for row in data["parameters"]}, {1, 126})

    @staticmethod
    def page(space):
        """What `meshwork report` makes of large.mwplan, and the data within."""
        page = space.must("meshwork", "report", "large.mwplan", "-o", "-").stdout
        return page, json.loads(page.split('id="data">')[1].split("</script>")[0])

    def test_pipelines_do_not_grow_with_ranks(self):
        """Sixteen programs of four stages, 128 microbatches."""
        space = shell.Shell()
        self.addCleanup(space.close)
        space.write("large.json", json.dumps(CONFIG))
        sizes, seconds = {}, {}
        for ranks in (2, 128):
            space.write("spec.toml", STAGES.format(ranks=ranks, batch=128 * ranks))
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            space.must("meshwork", "compile", "large.json", "--spec", "spec.toml", "-o", "large.mwplan")
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            seconds[ranks] = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            self.assertLess(after.ru_maxrss, 3 << 20)  # KiB
            sizes[ranks] = (space.path / "large.mwplan").stat().st_size
        self.assertLess(abs(sizes[2] - sizes[128]), sizes[2] / 40, sizes)
        self.assertLess(sizes[128], 1e6)
        # The goal is 1.1; other tests that run beside are felt in the caches.
        self.assertLess(seconds[128], 1.5 * seconds[2], seconds)
        told = json.loads(space.must("meshwork", "explain", "large.mwplan", "--json").stdout)
        self.assertEqual((told["ranks"], told["programs"]), (16384, 16))
        self.assertGreater(told["estimate"]["bubble_fraction"], told["bubble_fraction"])
        page, data = self.page(space)
        self.assertLess(len(page), 4e6)
        # Each of 16 ranks runs F and B of four stages for 128 microbatches, the start and the update.
        self.assertEqual([(len(row["spans"]), row["left_out"]) for row in data["schedule"]["planned"]["rows"]],
                         [(2 * 4 * 128 + 2, 0)] * 16)

    def test_plans_do_not_grow_with_tokens(self):
        """The head's chunks are one piece that repeats."""
        space = shell.Shell()
        self.addCleanup(space.close)
        space.write("long.json", json.dumps({**CONFIG, **TINY}))
        sizes, calls = {}, {}
        for tokens in (1 << 14, 1 << 20):
            space.write("spec.toml", LONG.format(tokens=tokens))
            space.must("meshwork", "compile", "long.json", "--spec", "spec.toml", "-o", "long.mwplan")
            sizes[tokens] = (space.path / "long.mwplan").stat().st_size
            told = json.loads(space.must("meshwork", "explain", "long.mwplan", "--json").stdout)
            calls[tokens] = sum(one["count"] for one in told["collectives"] if "vocabulary" in one["cause"])
        self.assertLess(abs(sizes[1 << 14] - sizes[1 << 20]), sizes[1 << 14] / 50, sizes)
        # A maximum, and two sums in one, for each chunk of 256 tokens.
        self.assertEqual(calls, {tokens: 2 * tokens // 256 for tokens in calls})


if __name__ == "__main__":
    unittest.main()
