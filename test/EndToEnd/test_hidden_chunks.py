"""Collective matmul over a link of given bandwidth: how much of what moves is hidden under products. Two processes send
each other all by sockets, and slowLink.so lets each wait as long as its link would take."""
import json
import unittest

from launched import RUN, Launched, free_port
from shell import BIN, Shell

ROWS, WIDTH, CHUNKS, STEPS, ROUNDS = 768, 768, 4, 3, 2
# Products of a rank take 2 * ROWS * WIDTH^2 flops for o and down, three times that for q, k and v, twice for gate and up.
MODEL = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 256,
         "max_position_embeddings": ROWS, "hidden_size": WIDTH, "intermediate_size": 2 * WIDTH, "num_hidden_layers": 1,
         "num_attention_heads": 16, "num_key_value_heads": 16, "head_dim": 2 * WIDTH // 16, "hidden_act": "silu",
         "rms_norm_eps": 1e-5, "rope_theta": 1e4, "initializer_range": 0.02, "torch_dtype": "float32",
         "tie_word_embeddings": False}
SMALLEST = 1 / (3 * (1 + 1 + 2 + 3))  # of a layer's products, with both gradients

SPEC = f"""
mesh.axes = ["tp=2"]
batch = {{ global = 1, micro = 1, sequence = {ROWS} }}
precision.compute = "f32"
shard.residual_sequence = ["tp"]
target.machine = "link.toml"
"""
MACHINE = """
name = "slow-link"
device = "cpu"
ranks_per_node = 2
flops.f32 = {flops}
memory.bandwidth = 1e10
launch.hand_over = 1e-4
[link.within_node]
latency = 1e-4
bandwidth = {bandwidth}
takes_cores = false
"""


class HiddenChunks(unittest.TestCase):
    cost_s = 40

    def setUp(self):
        self.shell = Shell()
        self.addCleanup(self.shell.close)
        self.shell.write("model.json", json.dumps(MODEL))
        self.shell.write("spec.toml", SPEC)

    def compile(self, name, machine, *settings):
        self.shell.write("link.toml", MACHINE.format(**machine))
        options = [part for one in settings for part in ("--set", one)]
        self.shell.must("meshwork", "compile", "model.json", "--spec", "spec.toml", *options, "-o", f"{name}.mwplan")
        return json.loads(self.shell.must("meshwork", "explain", f"{name}.mwplan", "--json").stdout)

    def train(self, name, bandwidth=0, steps=STEPS):
        """(metrics of each step but the first, trace)"""
        for file in ("metrics.jsonl", "trace.json"):
            (self.shell.path / file).unlink(missing_ok=True)
        link = {"LD_PRELOAD": BIN.parent / "test" / "slowLink.so", "SLOW_SOCKETS": bandwidth}
        run = Launched(self, range(2), RUN, f"{name}.mwplan", "--data", "README.md", "--tokenizer", "bytes", "--threads", "1",
                       "--steps", str(steps + 1), "--metrics", "metrics.jsonl", "--trace", "trace.json",
                       port=free_port(), **(link if bandwidth else {}))
        codes, said = run.finish()
        self.assertEqual(codes, [0, 0], said)
        trace = json.loads(self.shell.read("trace.json"))["traceEvents"]
        return [json.loads(line) for line in self.shell.read("metrics.jsonl").splitlines()[1:]], trace

    @staticmethod
    def seconds_of_products(trace):
        """Of a layer, on one rank; each at its fastest."""
        fastest = {}
        for event in trace:
            if event.get("cat") == "Matmul" and "layers." in event["name"] and event["pid"] == 0:
                place = event["args"]["action"], event["args"]["instruction"]
                fastest[place] = min(event["dur"] / 1e6, fastest.get(place, 1e9))
        return sum(fastest.values())

    def test_exposed_time_falls(self):
        """By 60 % at least of what c chunks can hide: (1 - 1/c) min(communication, product). A busy machine only makes
        products slower, which hide more then; the least of several steps is compared."""
        usual = {"flops": 4e10, "bandwidth": 1e9}
        self.compile("first", usual)
        product = self.seconds_of_products(self.train("first")[1]) * SMALLEST
        sent = ROWS * WIDTH * 4 / 2
        bandwidth = round(sent / product)
        machine = {"flops": 2 * ROWS * WIDTH ** 2 / product, "bandwidth": bandwidth}
        self.compile("whole", machine)
        told = self.compile("cut", machine, 'overlap.matmul="auto"', f"overlap.chunks={CHUNKS}")
        pairs = [one for one in told["collectives"] if "chunks beside its products" in one["cause"]]
        self.assertGreater(len(pairs), 4)
        exposed = {"whole": [], "cut": []}
        for _ in range(ROUNDS):
            for name, found in exposed.items():
                steps, trace = self.train(name, bandwidth)
                found += [(step["comm_ms"] + step["idle_ms"]) / 1e3 for step in steps]
                if name == "whole":
                    product = min(product, self.seconds_of_products(trace) * SMALLEST)
        form = sum((1 - 1 / one["count"]) * min(one["bytes_sent_per_rank"] / bandwidth, product) for one in pairs)
        least = {name: min(found) for name, found in exposed.items()}
        self.assertLess(least["cut"], least["whole"] - 0.6 * form, (exposed, form))


if __name__ == "__main__":
    unittest.main()
