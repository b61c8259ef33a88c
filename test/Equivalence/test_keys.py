"""Each key of a configuration, given another value, changes the model as it changes Transformers' class, or is refused
by its name. keys_record.py wrote down what the classes do; dialect.py computes what the imported text says."""
import json
import re
import unittest

import numpy as np
import torch

import dialect
import keys_record
import tools
import transformers_record as reference

BALANCE = {"output_router_logits"}  # adds a loss that dialect.py has not, which the second step shows
TOLERANCE = 1e-6  # classes compute norms and softmax in f32
PARAMETER = re.compile(r'transformer\.parameter "([^"]+)"(?: layer \d+)?( untrained)? init <[^>]*>(?: file_shape \[([\d, ]+)\])?'
                       r'(?: files \[#transformer\.file<"([^"]+)" along 0>\])?.* : (\S+)')


def shapes_in_files(text):
    """Name -> shape of every tensor that a file of the model has."""
    model, shapes = dialect.Model(text), {}
    for op in model.ops:
        found = PARAMETER.search(op)
        if not found:
            continue
        name, _, file_shape, pattern, _ = found.groups()
        shape = [int(size) for size in file_shape.split(", ")] if file_shape else model._result(op)[1]
        if pattern:
            shapes |= {pattern.replace("{}", str(i)): shape[1:] for i in range(shape[0])}
        else:
            shapes[name] = shape
    return shapes


def as_in_hub(name, config):
    """Values are drawn in the order of these names."""
    return name if config["model_type"] != "gpt2" or name.startswith("lm_head") else "transformer." + name


def losses(text, config, steps=2):
    """Of steps of SGD."""
    shapes = shapes_in_files(text)
    names = {as_in_hub(name, config): name for name in shapes}
    drawn = reference.weights({hub: shapes[name] for hub, name in names.items()}, reference.center_of_norms(config))
    weights = {names[hub]: torch.tensor(value, dtype=torch.float64).requires_grad_() for hub, value in drawn.items()}
    model, found = dialect.Model(text), []
    for number in range(steps):
        loss = model.loss(weights, *map(torch.from_numpy, reference.windows(number)))
        found.append(loss.item())
        if number + 1 < steps:
            loss.backward()
            for value in weights.values():
                if value.grad is not None:
                    value.data -= reference.RATE * value.grad
    return found


def mathematics(text):
    """Without the configuration that it came from."""
    return re.sub(r'transformer\.config = ".*"', "", text).split("\n", 1)[1]


class Keys(unittest.TestCase):
    cost_s = 40

    @classmethod
    def setUpClass(cls):
        threads = torch.get_num_threads()
        cls.addClassCleanup(torch.set_num_threads, threads)
        torch.set_num_threads(1)  # tensors are tiny
        cls.space = tools.Workspace()
        cls.addClassCleanup(cls.space.close)

    def imported(self, config):
        """The model's text, or None and what was said."""
        path = self.space.file(".mlir")
        done = self.space.call("meshwork", "import", self.space.write(".json", json.dumps(config)), "-o", path)
        if done.returncode:
            return None, done.stderr
        with open(path) as file:
            return file.read(), done.stderr

    def check(self, key, one, record, base):
        """Whether the key is taken."""
        config = record["config"]
        text, said = self.imported({**config, key: one["value"]})
        if text is None and "refused" in one:
            return False  # by both; by another key, where it no longer fits
        if text is None:
            self.assertRegex(said, rf"error: .*\b{re.escape(key)}\b", "refused without the key's name")
            return False
        self.assertNotIn("refused", one, "is taken, but not by Transformers")
        if mathematics(text) == mathematics(base):
            self.assertFalse(one["differs"], "changes nothing")
            return True
        # What the first loss does not show, such as a row without a gradient, the second does.
        steps = 2 if one["losses"][0] == record["losses"][0] and key not in BALANCE else 1
        np.testing.assert_allclose(losses(text, config, steps), one["losses"][:steps], rtol=TOLERANCE)
        return True

    def test_each_changes_what_it_changes_in_transformers(self):
        recorded = json.loads(keys_record.FILE.read_text())
        self.assertEqual(set(recorded), set(reference.FAMILIES))
        taken = []
        for family, record in recorded.items():
            base, said = self.imported(record["config"])
            with self.subTest(family):
                self.assertIsNotNone(base, said)
                np.testing.assert_allclose(losses(base, record["config"]), record["losses"], rtol=TOLERANCE)
            for key, one in record["keys"].items():
                with self.subTest(family, key=key, value=one["value"]):
                    taken.append(self.check(key, one, record, base))
        self.assertGreater(np.mean(taken), 0.8)  # refusing everything does not pass


if __name__ == "__main__":
    unittest.main()
