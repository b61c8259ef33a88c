"""What Transformers' own classes compute of small models, written to transformers.json for test_transformers.py.

    python transformers_record.py [FAMILY...]    # with Transformers and PyTorch; neither is needed by the test

Without names, all families; the others' records stay.

Of each family: the names and shapes of its parameters, the losses of some steps of SGD, each expert's tokens in each of them, as experts are called, and of the
first step every gradient, as its norm and its product with a fixed vector. In f64, as far as the classes let it be.
"""
import json
import math
import pathlib
import sys

import numpy as np

import configs
import philox

STEPS, BATCH, SEQUENCE, RATE = 20, 4, 23, 0.25
BALANCE = 0.25  # the coefficient, of families that have one
FILE = pathlib.Path(__file__).resolve().with_name("transformers.json")


def _family(name, config):
    if name in configs.MIXTURES and name != "dots1":
        return {**config, "output_router_logits": True, "router_aux_loss_coef": BALANCE}
    if name == "qwen3":  # Transformers 4.57 looks for this in rope_scaling alone
        key = "original_max_position_embeddings"
        inside = {**config["rope_scaling"], key: config[key]}
        return {**{k: v for k, v in config.items() if k != key}, "rope_scaling": inside}
    return config


FAMILIES = {name: _family(name, config) for name, config in {**configs.ALL, **configs.FOLLOWED}.items()}


def weights(shapes, center_of_norms=1.0, seed=7):
    """Name -> f32 array; every tensor random."""
    random = np.random.default_rng(seed)
    result = {}
    for name in sorted(shapes):
        center = center_of_norms if "norm" in name or "ln_" in name and name.endswith("weight") else 0.0
        result[name] = (center + 0.1 * random.standard_normal(shapes[name])).astype(np.float32)
    return result


def center_of_norms(config):
    """Gemma's classes add 1 to the weights."""
    return 0.0 if config["model_type"].startswith("gemma") else 1.0


def windows(step):
    """Tokens and targets, as the launcher draws them."""
    return philox.batch(np.asarray(configs.corpus()), 0, step, BATCH, SEQUENCE)


def told(gradient):
    """A norm, and a product that tells one element from another."""
    flat = np.asarray(gradient, np.float64).ravel()
    return [float(np.linalg.norm(flat)), float(flat @ np.cos(np.arange(flat.size)))]


class Family:
    def __init__(self, config):
        import torch
        import transformers
        self.torch = torch
        kind = getattr(transformers, config["architectures"][0])
        self.config = config
        made = kind.config_class.from_dict(config)
        made._attn_implementation = "eager"
        # Dots1's class adds f32 weights of choices to what experts make.
        self.type = torch.float32 if config["model_type"] == "dots1" else torch.float64
        self.model = kind(made).to(self.type).eval()
        self.experts = self.listen()

    def listen(self):
        """Layer -> how many tokens each expert has been called with."""
        found = {}
        for name, module in self.model.named_modules():
            parts = name.split(".")
            if len(parts) > 2 and parts[-2] == "experts":
                counts = found.setdefault(int(parts[2]), {})
                counts[int(parts[-1])] = 0
                module.register_forward_hook(lambda _, given, __, counts=counts, expert=int(parts[-1]): counts.update(
                    {expert: counts[expert] + given[0].shape[0]}))
        return found

    def load(self):
        own = {name: tuple(value.shape) for name, value in self.model.state_dict().items() if not name.endswith(".inv_freq")}
        if self.model.config.tie_word_embeddings:
            own.pop("lm_head.weight", None)
            own.pop("embed_out.weight", None)
        values = {name: self.torch.from_numpy(array).to(self.type) for name, array in weights(own, center_of_norms(self.config)).items()}
        self.model.load_state_dict(values, strict=False)
        self.model.tie_weights()
        return {name.removeprefix("transformer."): list(shape) for name, shape in own.items()}

    def step(self, number):
        """Counts, the loss and the balance loss."""
        for counts in self.experts.values():
            counts.update(dict.fromkeys(counts, 0))
        self.model.zero_grad()
        tokens, targets = map(self.torch.from_numpy, windows(number))
        out = self.model(tokens)
        loss = self.torch.nn.functional.cross_entropy(out.logits.flatten(0, 1), targets.flatten())
        balance = getattr(out, "aux_loss", None)
        (loss if balance is None else loss + BALANCE * balance).backward()
        counts = [[counts[e] for e in sorted(counts)] for _, counts in sorted(self.experts.items())]
        return counts, loss.item(), balance if balance is None else balance.item()

    def gradients(self):
        """Zero of an expert that no token has chosen."""
        return {name.removeprefix("transformer."): [0.0, 0.0] if p.grad is None else told(p.grad.numpy())
                for name, p in self.model.named_parameters()}

    def record(self):
        result = {"shapes": self.load(), "losses": [], "balance": [], "counts": []}
        for number in range(STEPS):
            counts, loss, balance = self.step(number)
            result["losses"].append(loss)
            result["counts"].append(counts)
            if balance is not None:
                result["balance"].append(balance)
            if number == 0:
                result["gradients"] = self.gradients()
            for p in self.model.parameters():
                if p.grad is not None:
                    p.data -= RATE * p.grad
        assert all(map(math.isfinite, result["losses"]))
        return result


def main(names):
    sys.path.remove(str(FILE.parent))  # a module here has the name of one that Transformers needs
    import transformers
    old = json.loads(FILE.read_text())["families"] if names else {}
    made = {name: Family(FAMILIES[name]).record() for name in names or FAMILIES}
    FILE.write_text(json.dumps({"transformers": transformers.__version__, "families": {**old, **made}}) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
