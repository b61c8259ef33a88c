"""Runs the tools as a user does, in a folder of their own.

    with tools.Workspace() as space:
        plan = space.compile(config, tools.spec(batch=4, micro=2, sequence=23))
        run = space.train(plan, data, steps=20, lr=1e-3, save=True)
        run.losses, run.weights

The tools are those in the folder MESHWORK_BIN names, else build/bin.
"""
import json
import math
import os
import pathlib
import subprocess
import tempfile

import numpy as np

import safetensors

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("MESHWORK_BIN", ROOT / "build" / "bin"))
TIMEOUT_S = 600  # of what hangs; a busy machine takes its time


# Keys of [batch]: documents as if each were alone.
APART = {"documents": "separate", "positions": "document", "document_end_loss": False}


def toml(value):
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {toml(member)}" for key, member in value.items()) + " }"
    return json.dumps(value)


def spec(batch, micro, sequence, dp=1, compute="f32", documents="joined", **sections):
    """A spec as TOML. A further section is name={key: value}; `documents` is the key of
    [batch], "apart" for APART, or a dictionary of keys about them."""
    about = APART if documents == "apart" else documents
    if not isinstance(about, dict):
        about = {"documents": about}
    parts = {"mesh": {"axes": [f"dp={dp}"]},
             "batch": {"global": batch, "micro": micro, "sequence": sequence, **about},
             "precision": {"compute": compute}}
    for name, keys in sections.items():
        parts.setdefault(name, {}).update(keys)
    lines = []
    for name, keys in parts.items():
        lines.append(f"[{name}]")
        lines += [f"{key} = {toml(value)}" for key, value in keys.items()]
    return "\n".join(lines) + "\n"


def spec_on(axes, batch, sequence, micro=None, **sections):
    """A spec for a mesh of these axes, "ep=2" and the like. Each rank that has sequences of its own takes them in two
    microbatches, where it has two, or by `micro`."""
    ranks = math.prod(int(axis.split("=")[1]) for axis in axes if axis.split("=")[0] in ("dp", "ep"))
    return spec(batch, micro or max(1, batch // ranks // 2), sequence, mesh={"axes": axes}, **sections)


def slow(test):
    """Left out of `./dev test quick`."""
    test.slow = True
    return test


class Run:
    """What one `meshwork-run` left behind."""

    def __init__(self, metrics, weights_path, gradients_path, said=""):
        self.metrics, self.said = metrics, said
        self.losses = [line["loss"] for line in metrics]
        self.weights_path, self.gradients_path = weights_path, gradients_path

    @property
    def weights(self):
        return safetensors.read(self.weights_path)

    @property
    def gradients(self):
        return safetensors.read(self.gradients_path)

    @property
    def weight_bytes(self):
        return pathlib.Path(self.weights_path).read_bytes()


class Workspace:
    def __init__(self, **environment):
        self._environment = {**os.environ, **environment}
        self._folder = tempfile.TemporaryDirectory(prefix="meshwork-")
        self.path = pathlib.Path(self._folder.name)
        self._files = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self._folder.cleanup()

    def file(self, suffix):
        self._files += 1
        return str(self.path / f"{self._files}{suffix}")

    def write(self, suffix, content):
        path = self.file(suffix)
        mode = "wb" if isinstance(content, bytes) else "w"
        with open(path, mode) as out:
            out.write(content)
        return path

    def tokens(self, ids):
        """A headerless u16 file."""
        return self.write(".u16", np.asarray(ids).astype("<u2").tobytes())

    def call(self, tool, *arguments, launcher=()):
        """The finished process; its output is text, and it ends by itself."""
        command = [*launcher, str(BIN / tool), *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, errors="replace",
                              timeout=TIMEOUT_S, stdin=subprocess.DEVNULL,
                              env=self._environment)

    def must(self, tool, *arguments, launcher=()):
        done = self.call(tool, *arguments, launcher=launcher)
        if done.returncode != 0:
            raise AssertionError(f"{' '.join(map(str, done.args))}: exit "
                                 f"{done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def model(self, config):
        """`config` imported to IR, the way of a user who looks at the model first."""
        path = self.file(".mlir")
        self.must("meshwork", "import", self.write(".json", json.dumps(config)), "-o", path)
        return path

    def compile(self, config, spec_text, *options):
        """A plan; `config` is a parsed config.json or the path of a model."""
        model = config if isinstance(config, str) else self.model(config)
        plan = self.file(".mwplan")
        self.must("meshwork", "compile", model, "--spec", self.write(".toml", spec_text),
                  "-o", plan, *options)
        return plan

    def explain(self, plan):
        return json.loads(self.must("meshwork", "explain", plan, "--json").stdout)

    def initial_weights(self, plan, seed=0):
        path = self.file(".safetensors")
        self.must("meshwork-run", plan, "--steps", 0, "--seed", seed, "--save", path)
        return path

    def train(self, plan, data, steps, *options, lr=1e-3, seed=0, init=None,
              launcher=()):
        """Runs `steps` optimizer steps on `data` (ids, or a file of them)."""
        metrics, weights = self.file(".jsonl"), self.file(".safetensors")
        gradients = self.file(".safetensors")
        data = data if isinstance(data, str) else self.tokens(data)
        arguments = ["--data", data, "--data-type", "u16", "--steps", steps, "--lr", lr,
                     "--seed", seed, "--metrics", metrics, "--save", weights,
                     "--save-gradients", gradients]
        if init is not None:
            arguments += ["--init", init]
        done = self.must("meshwork-run", plan, *arguments, *options, launcher=launcher)
        with open(metrics) as lines:
            return Run([json.loads(line) for line in lines], weights, gradients, done.stdout)

    def save_weights(self, weights):
        """Torch tensors (or arrays) as an f32 safetensors file."""
        path = self.file(".safetensors")
        safetensors.write(path, {
            name: np.ascontiguousarray(
                w.detach().numpy() if hasattr(w, "detach") else w).astype(np.float32)
            for name, w in weights.items()})
        return path
