"""Checkpoints as Hugging Face repositories: `meshwork checkpoint export`, and back by --init.

TRANSFORMERS_PYTHON names a Python with Transformers (default: this one); without it the tests
that load the repositories there are skipped."""
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import unittest

import numpy as np

import configs
import models
import safetensors
import tools
import transformers_record as reference

FAULTS = tools.BIN.resolve().parent / "test" / "faultyFiles.so"
PYTHON = os.environ.get("TRANSFORMERS_PYTHON", sys.executable)
# The classes' own names for parameters (save_pretrained's keys), of layer 0 and outside of layers,
# as recorded; `*` of the oracle's names is checked against them.
CLASSES = {"gpt2": "GPT2LMHeadModel", "llama": "LlamaForCausalLM", "qwen2": "Qwen2ForCausalLM",
           "qwen3": "Qwen3ForCausalLM", "mistral": "MistralForCausalLM",
           "mixtral": "MixtralForCausalLM", "qwen2_moe": "Qwen2MoeForCausalLM",
           "qwen3_moe": "Qwen3MoeForCausalLM", "olmoe": "OlmoeForCausalLM",
           "dots1": "Dots1ForCausalLM"}
CLASSES |= {family: config["architectures"][0] for family, config in configs.FOLLOWED.items()}
_GPT2 = ["transformer.wte.weight", "transformer.wpe.weight", "transformer.ln_f.weight",
         "transformer.ln_f.bias", *(f"transformer.h.0.{name}.{kind}" for kind in ("weight", "bias")
                                    for name in ("ln_1", "ln_2", "attn.c_attn", "attn.c_proj",
                                                 "mlp.c_fc", "mlp.c_proj"))]
_ENDS = ["model.embed_tokens.weight", "model.norm.weight"]
_ATTENTION = ["input_layernorm", "post_attention_layernorm", "self_attn.q_proj", "self_attn.k_proj",
              "self_attn.v_proj", "self_attn.o_proj"]
_PLAIN = _ENDS + [f"model.layers.0.{name}.weight" for name in (
    *_ATTENTION, "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj")]
_HEAD = ["lm_head.weight"]


_GATED = ("gate_proj", "up_proj", "down_proj")


def _mixture(layers, block, projections, experts, more=()):
    """Without expert 1, which looks like a layer's number."""
    names = [*_ATTENTION, *more, f"{block}.gate", *(f"{block}.experts.{number}.{name}" for number in experts
                                                    for name in projections)]
    return _ENDS + [f"model.layers.{layer}.{name}.weight" for layer in layers for name in names]


def _biases(*names):
    return [f"model.layers.0.{name}.bias" for name in names]


_QKV = ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"]
KEYS = {
    "gpt2": _GPT2,  # tied, Conv1D
    "llama": _PLAIN + _HEAD + _biases(*_QKV, "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj",
                                      "mlp.down_proj"),
    "mistral": _PLAIN + _HEAD,
    "qwen2": _PLAIN + _biases(*_QKV),
    "qwen3": _PLAIN + ["model.layers.0.self_attn.q_norm.weight",
                       "model.layers.0.self_attn.k_norm.weight"],
    "mixtral": _HEAD + _mixture((0,), "block_sparse_moe", ("w1", "w2", "w3"), (0, 2, 3)),
    "qwen2_moe": _HEAD + _biases(*_QKV) + [f"model.layers.2.{name}.bias" for name in _QKV] + _mixture(
        (0, 2), "mlp", _GATED, (0, *range(2, 8)),
        (*(f"mlp.shared_expert.{name}" for name in _GATED), "mlp.shared_expert_gate")),
    "olmoe": _HEAD + _mixture((0,), "mlp", _GATED, (0, *range(2, 8)), ("self_attn.q_norm", "self_attn.k_norm")),
    "dots1": _HEAD + [name for name in _PLAIN if name not in _ENDS] + _mixture(
        (2,), "mlp", _GATED, (0, *range(2, 8)),
        ("self_attn.q_norm", "self_attn.k_norm", *(f"mlp.shared_experts.{name}" for name in _GATED))) + [
            "model.layers.0.self_attn.q_norm.weight", "model.layers.0.self_attn.k_norm.weight",
            "model.layers.2.mlp.gate.e_score_correction_bias"],
    "qwen3_moe": _mixture((0, 2), "mlp", _GATED, (0, *range(2, 8)), ("self_attn.q_norm", "self_attn.k_norm"))}
# Transformers' plain attention has no sliding window for this family. Version 4 reads what "yarn" stretches in the
# object alone.
RECORDED = json.loads(reference.FILE.read_text())["families"]
CONFIGS = {**configs.ALL, **configs.FOLLOWED, "qwen2 full": {**configs.QWEN2, "use_sliding_window": False},
           "qwen3 yarn": {**configs.QWEN3, "rope_scaling": {**configs.QWEN3["rope_scaling"],
                                                       "original_max_position_embeddings": 16}}}
LOAD = """
import json, sys, torch
from transformers import AutoConfig, AutoModelForCausalLM
folders, ids = json.load(open(sys.argv[1]))
ids = torch.tensor(ids)
for folder in folders:
    model, info = AutoModelForCausalLM.from_pretrained(
        folder, output_loading_info=True, attn_implementation="eager", torch_dtype="auto")
    with torch.no_grad():
        logits = model.eval()(input_ids=ids[:, :-1]).logits.double()
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
    print(json.dumps({"missing": sorted(info["missing_keys"]), "loss": loss.item(),
                      "unexpected": sorted(info["unexpected_keys"]), "dtype": str(model.dtype),
                      "class": type(model).__name__}))
"""
# Transformers have these since.
SINCE = {"qwen3 yarn": (4, 51), "dots1": (4, 53), "phi3": (4, 47), "smollm3": (4, 53), "granite": (4, 45),
         "olmo2": (4, 47), "ministral": (4, 57), "gemma3_text": (4, 50)}


def transformers_version():
    done = subprocess.run([PYTHON, "-c", "import transformers; print(transformers.__version__)"],
                          capture_output=True, text=True, cwd="/")
    return tuple(int(part) for part in done.stdout.split(".")[:2]) if done.returncode == 0 else None


def to_bf16(values):
    """To nearest, half to even, as f32."""
    bits = values.astype(np.float32).view(np.uint32).astype(np.uint64)
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 << 16
    return rounded.astype(np.uint32).view(np.float32)


def shapes_of(family):
    """Of its parameters in files, as the oracle says, or Transformers did."""
    if family in configs.FOLLOWED:
        return {name: tuple(shape) for name, shape in RECORDED[family]["shapes"].items()}
    return models.parameter_shapes(configs.ALL[family])


class Export(unittest.TestCase):
    cost_s = 60

    @classmethod
    def setUpClass(cls):
        cls.space = tools.Workspace()
        cls.addClassCleanup(cls.space.close)
        cls.runs = {}

    def trained(self, family):
        """(plan, folder of checkpoints, weights) of two steps on two ranks."""
        if family not in self.runs:
            config = CONFIGS[family]
            plan = self.space.compile(config, tools.spec(configs.BATCH, 2, configs.SEQUENCE, dp=2,
                                                         zero={"stage": 1}))
            folder = self.space.file(".checkpoints")
            run = self.space.train(plan, configs.corpus(), 2, "--checkpoint", folder, lr=3e-3)
            self.runs[family] = plan, folder, run.weights
        return self.runs[family]

    def evaluated(self, family, weights):
        """The loss of the first windows of the corpus."""
        metrics = self.space.file(".jsonl")
        self.space.must("meshwork-run", self.trained(family)[0], "--evaluate", "--eval-data", self.space.tokens(configs.corpus()),
                        "--data-type", "u16", "--eval-steps", "1", "--init", weights, "--metrics", metrics)
        return json.loads(pathlib.Path(metrics).read_text())["eval_loss"]

    def export(self, family, *options):
        folder = pathlib.Path(self.space.file(".hf"))
        _, checkpoints, _ = self.trained(family)
        self.space.must("meshwork", "checkpoint", "export", checkpoints, "-o", folder, *options)
        return folder

    def refuse(self, code, needles, *arguments):
        done = self.space.call("meshwork", "checkpoint", *arguments)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        for needle in needles:
            self.assertIn(needle, done.stderr)

    def hub_names(self, family):
        prefix = "transformer." if CONFIGS[family]["model_type"] == "gpt2" else ""
        return {prefix + name: name for name in shapes_of(family)}

    def test_names_values_and_config(self):
        for family, config in {**configs.ALL, **configs.FOLLOWED}.items():
            with self.subTest(family):
                folder = self.export(family)
                self.assertEqual(sorted(p.name for p in folder.iterdir()),
                                 ["config.json", "model.safetensors"])
                arrays = safetensors.read(folder / "model.safetensors")
                names = self.hub_names(family)
                self.assertEqual(set(arrays), set(names))
                if family in KEYS:
                    self.assertEqual({n for n in arrays if not re.search(r"\.1\.", n)}, set(KEYS[family]))
                for name, array in arrays.items():
                    expected = self.trained(family)[2][names[name]]
                    self.assertEqual(array.dtype, np.float32)
                    self.assertEqual(array.shape, expected.shape, name)
                    self.assertEqual(array.tobytes(), expected.tobytes(), name)
                _, metadata, _ = safetensors.read_header(folder / "model.safetensors")
                self.assertEqual(metadata, {"format": "pt"})
                written = json.loads((folder / "config.json").read_text())
                self.assertEqual(written, {**config, "torch_dtype": "float32"})
                self.assertEqual(written["architectures"], [CLASSES[family]])

    def test_back_by_init_and_compile(self):
        """The repository is a model and its weights: the same plan, the same bits."""
        for family in (*configs.ALL, *configs.FOLLOWED):
            with self.subTest(family):
                plan, _, weights = self.trained(family)
                folder = self.export(family, "--max-shard-size", "20kB")
                again = self.space.compile(str(folder), tools.spec(
                    configs.BATCH, 2, configs.SEQUENCE, dp=2, zero={"stage": 1}))
                losses = [self.space.train(p, configs.corpus(), 1, init=init).losses
                          for p, init in ((plan, self.space.save_weights(weights)),
                                          (plan, folder), (again, folder))]
                self.assertEqual(losses[0], losses[1])
                self.assertEqual(losses[0], losses[2])

    def test_the_language_model_of_a_wrapper(self):
        """A repository with a part for pictures: the same model and weights as its language model's own repository."""
        plan, _, weights = self.trained("gemma3_text")
        folder = pathlib.Path(self.space.file(".hf"))
        folder.mkdir()
        wrapper = {"model_type": "gemma3", "architectures": ["Gemma3ForConditionalGeneration"],
                   "text_config": configs.GEMMA3, "vision_config": {"hidden_size": 8}}
        (folder / "config.json").write_text(json.dumps(wrapper))
        safetensors.write(folder / "model.safetensors", {
            "vision_tower.patch.weight": np.ones((2, 3), np.float32),
            **{f"language_model.{name}": value for name, value in weights.items()}})
        again = self.space.compile(str(folder), tools.spec(configs.BATCH, 2, configs.SEQUENCE, dp=2, zero={"stage": 1}))
        runs = [self.space.train(p, configs.corpus(), 1, init=init)
                for p, init in ((plan, self.space.save_weights(weights)), (again, folder))]
        self.assertEqual(runs[0].losses, runs[1].losses)
        self.assertIn("vision_tower.patch.weight", runs[1].said)

    def test_bf16_is_rounded_to_nearest_even(self):
        folder = self.export("qwen2", "--dtype", "bf16")
        entries, _, _ = safetensors.read_header(folder / "model.safetensors")
        self.assertEqual({e["dtype"] for e in entries.values()}, {"BF16"})
        weights = self.trained("qwen2")[2]
        for name, array in safetensors.read(folder / "model.safetensors").items():
            self.assertEqual(array.tobytes(), to_bf16(weights[name]).tobytes(), name)
        self.assertEqual(json.loads((folder / "config.json").read_text())["torch_dtype"],
                         "bfloat16")

    def test_a_bias_that_chooses_experts_stays_f32(self):
        weights = self.trained("dots1")[2]
        for dtype, others in (("bf16", "BF16"), ("f16", "F16")):
            folder = self.export("dots1", "--dtype", dtype)
            entries, _, _ = safetensors.read_header(folder / "model.safetensors")
            biases = {n for n in entries if n.endswith("e_score_correction_bias")}
            self.assertEqual(len(biases), 2)
            for name, entry in entries.items():
                self.assertEqual(entry["dtype"], "F32" if name in biases else others, name)
            arrays = safetensors.read(folder / "model.safetensors")
            for name in biases:
                self.assertEqual(arrays[name].tobytes(), weights[name].tobytes(), name)

    def test_f16(self):
        folder = self.export("mistral", "--dtype", "f16")
        weights = self.trained("mistral")[2]
        for name, array in safetensors.read(folder / "model.safetensors").items():
            self.assertEqual(array.tobytes(), weights[name].astype(np.float16).tobytes(), name)

    def test_shards(self):
        limit = 20000
        folder = self.export("llama", "--max-shard-size", f"{limit}B")
        index = json.loads((folder / "model.safetensors.index.json").read_text())
        files = sorted(p.name for p in folder.glob("*.safetensors"))
        count = len(files)
        self.assertGreater(count, 3)
        self.assertEqual(files, [f"model-{i + 1:05}-of-{count:05}.safetensors"
                                 for i in range(count)])
        seen, total = {}, 0
        for name in files:
            entries, metadata, _ = safetensors.read_header(folder / name)
            self.assertEqual(metadata, {"format": "pt"})
            size = max(e["data_offsets"][1] for e in entries.values())
            self.assertTrue(size <= limit or len(entries) == 1)
            seen.update({tensor: name for tensor in entries})
            total += size
        self.assertEqual(index, {"metadata": {"total_size": total}, "weight_map": seen})
        self.assertEqual(set(seen), set(self.hub_names("llama")))

    def test_a_model_changed_by_hand_needs_its_config(self):
        config = configs.LLAMA
        text = pathlib.Path(self.space.model(config)).read_text()
        edited = text.replace("epsilon 1.0e-05", "epsilon 0.5", 1)
        self.assertNotEqual(edited, text)
        bare = re.sub(r'transformer\.config = ".*"\}', "}", text)
        self.assertNotEqual(bare, text)
        for model, code, needles in (
                (edited, 65, ["was changed after it was imported", "rms_norm",
                              "5.000000e-01", "--config"]),
                (bare.replace("attributes {}", "").replace(",\n    }", "}"), 64,
                 ["imported from no config.json", "--config"])):
            plan = self.space.compile(self.space.write(".mlir", model),
                                      tools.spec(configs.BATCH, 2, configs.SEQUENCE))
            folder, out = self.space.file(".checkpoints"), self.space.file(".hf")
            self.space.train(plan, configs.corpus(), 1, "--checkpoint", folder)
            self.refuse(code, needles, "export", folder, "-o", out)
            self.assertFalse(pathlib.Path(out).exists())
            other = self.space.write(".json", json.dumps({**config, "intermediate_size": 80}))
            self.refuse(65, ["model.layers.0.mlp.down_proj.weight", "[48,72]", "[48,80]"],
                        "export", folder, "-o", out, "--config", other)
            given = self.space.write(".json", json.dumps(config))
            self.space.must("meshwork", "checkpoint", "export", folder, "-o", out, "--config",
                            given)
            self.assertEqual(json.loads(pathlib.Path(out, "config.json").read_text()), config)

    def test_all_or_nothing(self):
        _, checkpoints, _ = self.trained("qwen2")
        newest = max(pathlib.Path(checkpoints).iterdir())
        full = pathlib.Path(self.space.file(".full"))
        full.mkdir()
        (full / "precious").write_text("1")
        self.refuse(73, ["is there and not empty"], "export", checkpoints, "-o", full)
        self.assertEqual([p.name for p in full.iterdir()], ["precious"])
        self.refuse(64, ["--dtype", "bf16"], "export", checkpoints, "-o", "x", "--dtype", "f8")
        self.refuse(64, ["--max-shard-size"], "export", checkpoints, "-o", "x",
                    "--max-shard-size", "big")
        self.refuse(66, ["holds no checkpoint"], "export", full, "-o", "x")
        # A bit that flipped in the last file is found, and nothing is left behind.
        damaged = pathlib.Path(self.space.file(".damaged")) / newest.name
        damaged.mkdir(parents=True)
        for path in newest.iterdir():
            (damaged / path.name).write_bytes(path.read_bytes())
        states = max(damaged.glob("states-*.safetensors"))
        data = bytearray(states.read_bytes())
        data[-1] ^= 1
        states.write_bytes(bytes(data))
        for command in (["verify", damaged], ["verify", damaged.parent]):
            self.refuse(65, [states.name], *command)
        out = pathlib.Path(self.space.file(".hf"))
        self.refuse(65, [states.name], "export", damaged, "-o", out)
        self.assertEqual([p for p in out.parent.iterdir() if p.name.startswith(out.name)], [])

    def test_killed_at_each_call(self):
        """What is left is not the repository's name, and goes when the export is repeated."""
        _, checkpoints, _ = self.trained("qwen2")
        out = pathlib.Path(self.space.file(".hf"))
        command = ("meshwork", "checkpoint", "export", checkpoints, "-o", out,
                   "--max-shard-size", "40kB")

        def faulty(**variables):
            given = {"LD_PRELOAD": FAULTS, "FAULT_FOLDER": out, **variables}
            return self.space.call(*command, launcher=(
                "env", *(f"{name}={value}" for name, value in given.items())))

        def files():
            found = {path.name: path.read_bytes() for path in out.iterdir()}
            shutil.rmtree(out)
            return found

        log = pathlib.Path(self.space.file(".log"))
        self.assertEqual(faulty(FAULT_LOG=log).returncode, 0)
        whole, calls = files(), log.read_text().splitlines()
        self.assertGreater(len(whole), 3)  # shards, an index, a configuration
        self.assertGreaterEqual({line.split()[1] for line in calls}, {"write", "fsync", "rename"})
        for at in random.Random(3).sample(range(1, len(calls) + 1), 8) + [len(calls)]:
            self.assertNotEqual(faulty(FAULT_AT=at, FAULT_DO="kill").returncode, 0, calls[at - 1])
            self.assertFalse(out.exists(), calls[at - 1])
            left = [path.name for path in out.parent.glob(f"{out.name}*")]
            self.assertEqual(len(left), 1, left)
            self.space.must(*command)
            self.assertEqual([path.name for path in out.parent.glob(f"{out.name}*")], [out.name])
            self.assertEqual(files(), whole)

    def test_inspect_and_verify(self):
        plan, checkpoints, weights = self.trained("gpt2")
        incomplete = pathlib.Path(self.space.file(".some"))
        incomplete.mkdir()
        (incomplete / "step-0000000009").mkdir()
        newest = max(pathlib.Path(checkpoints).iterdir())
        (incomplete / newest.name).symlink_to(newest)
        text = self.space.must("meshwork", "checkpoint", "inspect", incomplete).stdout
        for needle in ("step 2, 2 updates, 8 samples", "incomplete", "state weight: F32",
                       "state first_moment: F32", "h.1.mlp.c_proj.bias"):
            self.assertIn(needle, text)
        told = json.loads(self.space.must("meshwork", "checkpoint", "inspect", incomplete,
                                          "--json").stdout)["checkpoints"]
        self.assertEqual([one["complete"] for one in told], [True, False])
        whole = told[0]
        self.assertEqual((whole["step"], whole["updates"], whole["samples"]), (2, 2, 8))
        self.assertEqual({t["name"]: tuple(t["file_shape"]) for t in whole["tensors"]},
                         {n: a.shape for n, a in weights.items()})
        count = sum(a.size for a in weights.values())
        self.assertEqual({s["name"]: (s["dtype"], s["elements"]) for s in whole["states"]},
                         {n: ("F32", count) for n in ("weight", "first_moment", "second_moment")})
        self.assertEqual(whole["bytes"], sum(p.stat().st_size for p in newest.iterdir()
                                             if p.name != "manifest.json"))
        said = self.space.must("meshwork", "checkpoint", "verify", incomplete).stdout
        self.assertIn("whole", said)
        self.assertIn("passed over", said)

    @unittest.skipUnless(transformers_version(), f"{PYTHON} has no Transformers")
    def test_transformers_loads_them(self):
        corpus, length = configs.corpus(), configs.SEQUENCE
        ids = np.stack([corpus[i * length:(i + 1) * length + 1] for i in range(configs.BATCH)]).tolist()
        families = [f for f in ("gpt2", "llama", "qwen2 full", "qwen3 yarn", "mistral", "dots1", *configs.FOLLOWED)
                    if transformers_version() >= SINCE.get(f, (0,))]
        for dtype, type_there, allowed in (("f32", "torch.float32", 2e-6), ("bf16", "torch.bfloat16", 2e-2)):
            folders = [self.export(family, "--dtype", dtype, "--max-shard-size", "40kB") for family in families]
            done = subprocess.run(
                [PYTHON, "-c", LOAD, self.space.write(".json", json.dumps([list(map(str, folders)), ids]))],
                capture_output=True, text=True, cwd="/")
            self.assertEqual(done.returncode, 0, done.stderr)
            told = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"missing"')]
            self.assertEqual(len(told), len(families))
            for family, folder, one in zip(families, folders, told):
                with self.subTest(f"{family} {dtype}"):
                    self.assertEqual(one["missing"] + one["unexpected"], [])
                    self.assertEqual(one["class"], CLASSES.get(family) or CLASSES[family.split()[0]])
                    self.assertEqual(one["dtype"], type_there)
                    self.assertAlmostEqual(one["loss"] / self.evaluated(family, folder), 1, delta=allowed)


if __name__ == "__main__":
    unittest.main()
