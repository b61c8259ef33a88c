"""Mixtures of experts as Mixtral (Jiang et al., arXiv 2401.04088), Qwen2-MoE, Qwen3-MoE, OLMoE and, like DeepSeek-V3
(arXiv 2412.19437), dots.llm1 have them, on a dictionary of weights named as in Hugging Face files, a tensor for each expert."""
import contextlib
import math

import torch

_listeners = []  # lists that what each router makes goes to


def _names(config):
    """Of a block, and of an expert's three projections."""
    if config["model_type"] == "mixtral":
        return "block_sparse_moe", ("w1", "w3", "w2")
    return "mlp", ("gate_proj", "up_proj", "down_proj")


def _experts(config):
    return config.get("num_local_experts") or config.get("num_experts") or config["n_routed_experts"]


def untrained(name):
    """Whether no gradient reaches it."""
    return name.endswith("e_score_correction_bias")


def has_experts(config, layer):
    if config["model_type"] in ("mixtral", "olmoe"):
        return True
    if config["model_type"] == "dots1":
        return layer >= config["first_k_dense_replace"]
    return (config["model_type"] in ("qwen2_moe", "qwen3_moe") and layer not in (config.get("mlp_only_layers") or [])
            and (layer + 1) % config.get("decoder_sparse_step", 1) == 0)


def parameter_shapes(config, layer_name):
    """Name -> shape of the tensors of one layer's experts."""
    block, names = _names(config)
    embed = config["hidden_size"]
    inner = config.get("moe_intermediate_size") or config["intermediate_size"]
    shapes = {f"{layer_name}{block}.gate.weight": (_experts(config), embed)}
    for expert in range(_experts(config)):
        for name, shape in zip(names, ((inner, embed), (inner, embed), (embed, inner))):
            shapes[f"{layer_name}{block}.experts.{expert}.{name}.weight"] = shape
    if config["model_type"] == "dots1":
        shapes[f"{layer_name}{block}.gate.e_score_correction_bias"] = (_experts(config),)
        inner *= config["n_shared_experts"]
        for name, shape in zip(names, ((inner, embed), (inner, embed), (embed, inner))):
            shapes[f"{layer_name}{block}.shared_experts.{name}.weight"] = shape
    if config["model_type"] == "qwen2_moe":
        inner = config["shared_expert_intermediate_size"]
        for name, shape in zip(names, ((inner, embed), (inner, embed), (embed, inner))):
            shapes[f"{layer_name}{block}.shared_expert.{name}.weight"] = shape
        shapes[f"{layer_name}{block}.shared_expert_gate.weight"] = (1, embed)
    return shapes


def _largest(scores, k):
    """Of equal scores the lower number's, which topk does not promise."""
    return scores.detach().sort(dim=-1, descending=True, stable=True).indices[..., :k]


def _choose(config, logits):
    """Choices and their weights."""
    scores = logits.softmax(dim=-1)
    choices = _largest(scores, config["num_experts_per_tok"])
    chosen = scores.gather(-1, choices)
    if config["model_type"] == "mixtral" or config.get("norm_topk_prob"):
        chosen = chosen / chosen.sum(dim=-1, keepdim=True)
    return choices, chosen


def _choose_biased(config, logits, bias):
    scores, groups = logits.sigmoid(), config.get("n_group", 1)
    biased = (scores + bias).detach().unflatten(-1, (groups, -1))
    best = _largest(biased.sort(dim=-1, descending=True).values[..., :2].sum(dim=-1), config.get("topk_group", 1))
    kept = torch.zeros(biased.shape[:-1], dtype=torch.bool).scatter(-1, best, True)
    choices = _largest(biased.masked_fill(~kept.unsqueeze(-1), -torch.inf).flatten(-2), config["num_experts_per_tok"])
    chosen = scores.gather(-1, choices)
    if config.get("norm_topk_prob"):
        chosen = chosen / (chosen.sum(dim=-1, keepdim=True) + 1e-20)
    return choices, chosen * config.get("routed_scaling_factor", 1.0)


def _limited(config, choices, samples):
    """Choices [tokens, k], and -1 where the expert has no room: of config["capacity"], a factor and the samples of a
    group. First choices of all tokens come before second ones."""
    factor, group = config["capacity"]
    kept = choices.clone()
    for begin in range(0, len(choices), len(choices) // samples * group):
        part = kept[begin:begin + len(choices) // samples * group]
        room = [math.ceil(factor * part.numel() / _experts(config))] * _experts(config)
        for turn in range(part.shape[1]):
            for token in range(len(part)):
                expert = part[token, turn].item()
                room[expert] -= 1
                if room[expert] < 0:
                    part[token, turn] = -1
    return kept


def _sum_of(_layer_name, tokens, experts, shares, activation):
    result = torch.zeros_like(tokens)
    for (gate, up, down), share in zip(experts, shares, strict=True):
        inner = activation(tokens @ gate.t()) * (tokens @ up.t())
        result = result + share * (inner @ down.t())
    return result


def mixture(config, weights, layer_name, x, activation):
    """[batch, sequence, embed]: each token's experts, weighed by the router's probabilities. config["experts"] may
    compute their sum otherwise, in FP8 (fp8.Experts)."""
    block, names = _names(config)
    tokens = x.flatten(0, 1)
    logits = tokens @ weights[f"{layer_name}{block}.gate.weight"].t()
    if config["model_type"] == "dots1":
        choices, chosen = _choose_biased(config, logits, weights[f"{layer_name}{block}.gate.e_score_correction_bias"])
    else:
        choices, chosen = _choose(config, logits)
    for listener in _listeners:
        listener.append((logits.view(*x.shape[:2], -1), choices))
    if "capacity" in config:
        choices = _limited(config, choices, len(x))
    experts = [[weights[f"{layer_name}{block}.experts.{expert}.{name}.weight"] for name in names]
               for expert in range(_experts(config))]
    # All tokens, so that an expert that nobody chose has a gradient of zero.
    shares = [torch.where(choices == expert, chosen, 0.0).sum(dim=-1, keepdim=True) for expert in range(len(experts))]
    result = config.get("experts", _sum_of)(layer_name, tokens, experts, shares, activation)
    if config["model_type"] == "dots1":
        gate, up, down = (weights[f"{layer_name}{block}.shared_experts.{part}.weight"] for part in names)
        result = result + (activation(tokens @ gate.t()) * (tokens @ up.t())) @ down.t()
    if config["model_type"] == "qwen2_moe":
        name = f"{layer_name}{block}.shared_expert"
        gate, up, down = (weights[f"{name}.{part}.weight"] for part in names)
        inner = activation(tokens @ gate.t()) * (tokens @ up.t())
        result = result + (tokens @ weights[f"{name}_gate.weight"].t()).sigmoid() * (inner @ down.t())
    return result.view_as(x)


@contextlib.contextmanager
def heard():
    """A list of each layer's logits, [batch, sequence, experts], and choices, [tokens, k], as models compute them
    meanwhile."""
    _listeners.append([])
    try:
        yield _listeners[-1]
    finally:
        _listeners.pop()


def dropped(config, routers, samples):
    """Choices without room, a layer."""
    return [(_limited(config, choices, samples) < 0).sum().item() for _, choices in routers]


def balance(config, routers, of="model", group=1):
    """The mean over groups of sequences of what Hugging Face's classes compute of one call, each group a call; of
    "layer", the mean of it over layers."""
    experts, k = _experts(config), config["num_experts_per_tok"]
    scores = torch.stack([logits for logits, _ in routers])  # [layer, batch, sequence, expert]
    scores = scores.unflatten(1, (-1, group)).flatten(2, 3).softmax(dim=-1)
    choices = scores.detach().sort(dim=-1, descending=True, stable=True).indices[..., :k]
    chosen = torch.nn.functional.one_hot(choices, experts).sum(dim=-2).to(scores.dtype)
    over = (0, 2) if of == "model" else (2,)
    return experts * (chosen.mean(dim=over) * scores.mean(dim=over)).sum(dim=-1).mean()


def load(config, routers):
    """[most, mean, least] choices of an expert, a layer."""
    counts = [torch.bincount(choices.flatten(), minlength=_experts(config)).double() for _, choices in routers]
    return [[one.max().item(), one.mean().item(), one.min().item()] for one in counts]


def router_z(routers):
    return torch.stack([logits for logits, _ in routers]).logsumexp(dim=-1).square().mean()
