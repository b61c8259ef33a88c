"""What a model in the transformer dialect computes, by its text: the ops that `meshwork import` writes, in PyTorch.

    model = dialect.Model(text)
    model.loss(weights, tokens, targets).backward()

`weights` are leaf tensors by their names in files. It shares nothing with the compiler and reads no other text than
importing writes; dropout does nothing.
"""
import math
import re

import torch
from torch.nn import functional as F

TYPE = re.compile(r"tensor<([\dx?]*?)x?(?:f32|i32)(?:, #transformer\.dims<([^>]*)>)?>")
NAME = r"%(\w+)"


class Value:
    def __init__(self, tensor, dims):
        self.tensor, self.dims = tensor, tuple(dims)

    def along(self, dims):
        """Its elements with these dims, of size 1 where it lacks them."""
        order = [self.dims.index(dim) for dim in dims if dim in self.dims]
        assert len(order) == len(self.dims), (self.dims, dims)
        shape = [self.tensor.shape[self.dims.index(dim)] if dim in self.dims else 1 for dim in dims]
        return self.tensor.permute(order).reshape(shape)


def _number(text, pattern, fallback=None):
    found = re.search(pattern, text)
    return float(found[1]) if found else fallback


def _capped(x, text):
    cap = _number(text, r"\bcap (\S+)")
    return x if cap is None else cap * torch.tanh(x / cap)


def _activation(name, x):
    return {"gelu_tanh": lambda: F.gelu(x, approximate="tanh"), "gelu": lambda: F.gelu(x), "silu": lambda: F.silu(x),
            "relu": lambda: F.relu(x), "sigmoid": lambda: torch.sigmoid(x)}[name]()


class Model:
    def __init__(self, text):
        self.aliases = dict(re.findall(r"^!(\w+) = (tensor<.*>)$", text, re.M))
        body = text[text.index("func.func @loss"):]
        self.ops = self._grouped(body.splitlines()[1:])
        coefficient = re.search(r"balance_coefficient = (\S+) :", text)
        self.balance = float(coefficient[1]) if coefficient else 0.0

    @staticmethod
    def _grouped(lines):
        """One string for an op; a map with the lines of its body."""
        ops, inside = [], False
        for line in map(str.strip, lines):
            if inside:
                ops[-1] += "\n" + line
                inside = line != "}"
            elif line.startswith("%"):
                ops.append(line)
                inside = line.endswith("{")
        return ops

    def _result(self, text):
        """Names of dims and sizes (None where open) of an op's first result."""
        where = text.split("\n")[0].rsplit(" : ", 1)[-1].split("->")[-1].strip(" {")
        where = where.split(", !")[0] if where.startswith("!") else where
        if where.startswith("!"):
            where = self.aliases[re.match(r"!(\w+)", where)[1]]
        sizes, dims = TYPE.match(where).groups()
        return tuple(re.split(", ", dims)) if dims else (), [
            None if size == "?" else int(size) for size in sizes.split("x") if size]

    def loss(self, weights, tokens, targets):
        self.weights, self.values = weights, {}
        self.values["tokens"] = Value(tokens, ("batch", "sequence"))
        self.targets = targets
        for text in self.ops:
            name = re.match(NAME, text)[1]
            kind = re.search(r"= transformer\.(\w+)", text)[1]
            dims, sizes = self._result(text)
            rest = text[text.index("transformer." + kind) + len("transformer.") + len(kind):]
            operands = [self.values[one] for one in re.findall(NAME, rest.split("\n")[0]) if one in self.values]
            tensor = getattr(self, "_" + kind)(rest, operands, dims, sizes)
            self.values[name] = Value(tensor, dims)
        return self.values["loss"].tensor

    def _parameter(self, text, _operands, _dims, sizes):
        stacked = re.search(r'#transformer\.file<"([^"]*{}[^"]*)" along 0>', text)
        if stacked:
            parts = [self.weights[stacked[1].replace("{}", str(i))] for i in range(sizes[0])]
            return torch.stack(parts).reshape(sizes)
        return self.weights[re.match(r' "([^"]*)"', text)[1]].reshape(sizes)

    def _embedding(self, text, operands, _dims, _sizes):
        padding = _number(text, r"padding (\d+)")
        return F.embedding(operands[1].tensor, operands[0].tensor,
                           padding_idx=None if padding is None else int(padding))

    def _add(self, _text, operands, dims, _sizes):
        return operands[0].along(dims) + operands[1].along(dims)

    def _mul(self, _text, operands, dims, _sizes):
        return operands[0].along(dims) * operands[1].along(dims)

    def _contract(self, text, operands, _dims, _sizes):
        return torch.einsum(re.match(r' "([^"]*)"', text)[1], operands[0].tensor, operands[1].tensor)

    def _activate(self, text, operands, _dims, _sizes):
        return _activation(text.split()[0], operands[0].tensor)

    def _softmax(self, _text, operands, _dims, _sizes):
        return torch.softmax(operands[0].tensor, -1)

    def _dropout(self, _text, operands, _dims, _sizes):
        return operands[0].tensor

    def _rms_norm(self, text, operands, _dims, _sizes):
        x, weight = operands
        last = tuple(range(x.tensor.dim() - weight.tensor.dim(), x.tensor.dim()))
        epsilon = _number(text, r"epsilon (\S+)")
        return x.tensor * torch.rsqrt(x.tensor.square().mean(last, keepdim=True) + epsilon) * weight.tensor

    def _layer_norm(self, text, operands, _dims, _sizes):
        x, weight, bias = (operand.tensor for operand in operands)
        return F.layer_norm(x, weight.shape, weight, bias, _number(text, r"epsilon (\S+)"))

    def _standardize(self, text, operands, _dims, _sizes):
        x = operands[0].tensor
        return F.layer_norm(x, x.shape[-1:], None, None, _number(text, r"epsilon (\S+)"))

    def _rope(self, text, operands, _dims, _sizes):
        x = operands[0].tensor
        frequencies = torch.tensor(list(map(float, re.search(r"\[(.*?)\]", text)[1].split(", "))))
        scale, half = _number(text, r"scale (\S+)"), len(frequencies)
        angles = (torch.arange(x.shape[1]).float()[:, None] * frequencies)[:, None, :]
        cos, sin = (angles.cos() * scale).to(x.dtype), (angles.sin() * scale).to(x.dtype)
        a, b, kept = x[..., :half], x[..., half:2 * half], x[..., 2 * half:]
        return torch.cat((a * cos - b * sin, b * cos + a * sin, kept), -1)

    def _slice(self, text, operands, dims, sizes):
        dim, offset = re.search(r'dim "(\w+)" offset (\d+)', text).groups()
        at, offset = operands[0].dims.index(dim), int(offset)
        if len(dims) < len(operands[0].dims):
            return operands[0].tensor.select(at, offset)
        count = self.values["tokens"].tensor.shape[1] if sizes[at] is None else sizes[at]
        return operands[0].tensor.narrow(at, offset, count)

    def _reduce(self, text, operands, dims, _sizes):
        gone = tuple(i for i, dim in enumerate(operands[0].dims) if dim not in dims)
        assert text.split()[0] == "add", text
        return operands[0].tensor.sum(gone)

    def _map(self, text, operands, dims, _sizes):
        lines = text.split("\n")
        local = {name: operand.along(dims) for name, operand in zip(re.findall(NAME, lines[1]), operands)}
        for line in lines[2:-2]:
            name, op, words = re.match(r"%(\w+) = arith\.(\w+) (.*) : f32$", line).groups()
            words = words.split(", ")
            if op == "constant":
                local[name] = torch.tensor(float(words[0]), dtype=torch.float32).to(torch.float64)
            elif op == "cmpf":
                a, b = local[words[1][1:]], local[words[2][1:]]
                local[name] = {"ogt": a > b, "olt": a < b}[words[0]]
            elif op == "select":
                local[name] = torch.where(*(local[word[1:]] for word in words))
            else:
                a, b = (local[word[1:]] for word in words)
                local[name] = {"mulf": a.mul, "addf": a.add, "divf": a.div}[op](b)
        return local[re.search(NAME, lines[-2])[1]]

    def _attention(self, text, operands, _dims, _sizes):
        q, k, v = (operand.tensor.transpose(1, 2) for operand in operands)
        group = q.shape[1] // k.shape[1]
        k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
        distance = torch.arange(q.shape[2])[:, None] - torch.arange(q.shape[2])
        window = _number(text, r"window (\d+)", math.inf)
        scores = _capped(q @ k.transpose(2, 3) * _number(text, r"scale (\S+)"), text)
        scores = scores.masked_fill((distance < 0) | (distance >= window), -math.inf)
        return (torch.softmax(scores, -1) @ v).transpose(1, 2)

    def _top_k(self, text, operands, _dims, sizes):
        scores, groups = operands[0].tensor.detach(), re.search(r"groups (\d+) kept (\d+)", text)
        if groups:
            count, kept = map(int, groups.groups())
            split = scores.unflatten(-1, (count, -1))
            best = split.topk(2, -1).values.sum(-1).topk(kept, -1).indices
            mask = torch.zeros(split.shape[:-1], dtype=torch.bool).scatter(-1, best, True)
            scores = split.masked_fill(~mask[..., None], -math.inf).flatten(-2)
        return scores.topk(sizes[-1], -1).indices

    def _pick(self, _text, operands, _dims, _sizes):
        return operands[0].tensor.gather(-1, operands[1].tensor)

    def _experts(self, text, operands, _dims, _sizes):
        x, choices, weights, gate, up, down = (operand.tensor for operand in operands)
        inner = _activation(text.split()[0], torch.einsum("bse,xfe->bsxf", x, gate))
        all_ = torch.einsum("bsxf,xef->bsxe", inner * torch.einsum("bse,xfe->bsxf", x, up), down)
        share = torch.zeros(all_.shape[:3], dtype=x.dtype).scatter(-1, choices, weights)
        return torch.einsum("bsxe,bsx->bse", all_, share)

    def _head_loss(self, text, operands, _dims, _sizes):
        logits = _capped(operands[0].tensor @ operands[1].tensor.t(), text)
        return F.cross_entropy(logits.flatten(0, 1), self.targets.flatten())
