"""Counts what a Llama layer moves between ranks; compares with closed forms.

usage: check_counts.py MESHWORK FOLDER

A layer is the difference of models with three and two layers. Sources: Shoeybi
et al., arXiv 1909.08053 (tp); Korthikanti et al., arXiv 2205.05198 (sequence
parallelism); Rajbhandari et al., arXiv 1910.02054 (ZeRO).
"""
import collections
import json
import math
import pathlib
import re
import subprocess
import sys

meshwork, folder = sys.argv[1], pathlib.Path(sys.argv[2])
BATCH, SEQUENCE, EMBED, FFN, HEADS, KEY_HEADS, VOCAB = 2, 16, 32, 64, 4, 2, 96
HEAD = EMBED // HEADS
STREAM = BATCH * SEQUENCE * EMBED  # the residual stream of one data-parallel rank
# q and o, k and v, gate and up and down, two norms
WEIGHTS = sorted([EMBED * EMBED] * 2 + [KEY_HEADS * HEAD * EMBED] * 2 + [FFN * EMBED] * 3 + [EMBED] * 2)

COLLECTIVE = re.compile(r'mesh\.(\w+) .* over \[(.*?)\] cause .*?( \{[^{}]*\})? : tensor<(.*?), (#\w+)> -> tensor<(.*?), #\w+>')


def config(layers):
    return {"model_type": "llama", "hidden_act": "silu", "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "max_position_embeddings": SEQUENCE,
            "initializer_range": 0.02, "tie_word_embeddings": False, "vocab_size": VOCAB, "intermediate_size": FFN, "hidden_size": EMBED,
            "num_attention_heads": HEADS, "num_key_value_heads": KEY_HEADS, "num_hidden_layers": layers}


def spec(axes, extra):
    data = math.prod(int(axis[-1]) for axis in axes if not axis.startswith("tp"))
    return (f'[mesh]\naxes = {json.dumps(axes)}\n[batch]\nglobal = {2 * BATCH * data}\nmicro = {BATCH}\nsequence = {SEQUENCE}\n'
            f'[precision]\ncompute = "f32"\n{extra}')


def gpt2(layers):
    return {"model_type": "gpt2", "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5, "initializer_range": 0.02, "tie_word_embeddings": True, "resid_pdrop": 0.1,
            "embd_pdrop": 0.1, "attn_pdrop": 0.1, "vocab_size": VOCAB, "n_inner": FFN, "n_positions": 2 * SEQUENCE, "n_embd": EMBED, "n_head": HEADS, "n_layer": layers}


def moved(model, axes, extra):
    """(phase, kind, axes, elements of the whole) -> count; scalars are left out"""
    (folder / "config.json").write_text(json.dumps(model))
    (folder / "spec.toml").write_text(spec(axes, extra))
    out = folder / "fuse.mlir"
    subprocess.run([meshwork, "compile", folder / "config.json", "--spec", folder / "spec.toml", "--compile-to=fuse", "-o", out], check=True)
    counts, function = collections.Counter(), ""
    for line in out.read_text().splitlines():
        start = re.search(r"func\.func @(\w+)", line)
        function = start.group(1) if start else function
        op = COLLECTIVE.search(line)
        if not op or op.group(1) == "slice":
            continue
        kind, over, attributes, before, dims, after = op.groups()
        assert not ("vocab" in dims and "sequence" in dims), f"logits are moved: {line}"
        phase = "update" if function == "update" else "backward" if "transformer.pass" in (attributes or "") else "forward"
        sizes = [math.prod(map(int, shape.split("x")[:-1])) for shape in (before, after)]
        counts[phase, kind, over.replace('"', ""), max(sizes)] += 1
    return counts


def expect(name, axes, extra, wanted):
    three, two = moved(config(3), axes, extra), moved(config(2), axes, extra)
    found = collections.Counter({key: three[key] - two[key] for key in three if three[key] != two[key]})
    if found == collections.Counter(wanted):
        return True
    print(f"{name}:")
    for key in sorted(set(found) | set(wanted), key=str):
        if found[key] != wanted.get(key, 0):
            print(f"  {key}: found {found[key]} a layer, expected {wanted.get(key, 0)}")
    return False


def only_in_update(axes, extra):
    """No gradient is summed over ranks in each microbatch, in no part of the model."""
    early = [key for model in (gpt2(1), config(1)) for key in moved(model, axes, extra) if key[0] != "update"]
    for key in early:
        print(f"{key} is moved in a microbatch")
    return not early


def each(phase, kind, axis, sizes, times=1):
    return {(phase, kind, axis, size): times * count for size, count in collections.Counter(sizes).items()}


def main():
    folder.mkdir(parents=True, exist_ok=True)
    split = [size // 2 if size > EMBED else size for size in WEIGHTS]  # over tp=2; norms are whole
    sp = "[recompute]\npolicy = \"none\"\n" + '[shard]\nresidual_sequence = ["tp"]\n'
    tp = {(phase, "all_reduce", "tp", STREAM): 2 for phase in ("forward", "backward")}
    tp_sp = {(phase, kind, "tp", STREAM): 2 for phase in ("forward", "backward") for kind in ("all_gather", "reduce_scatter")}

    def zero(stage):
        return f'[zero]\nstage = {stage}\naxes = ["dp"]\n'

    results = [
        expect("one rank", ["dp=1"], "", {}),
        only_in_update(["dp=2"], ""),
        only_in_update(["dp=2"], zero(1)),
        expect("dp", ["dp=2"], "", each("update", "all_reduce", "dp", WEIGHTS)),
        expect("tp", ["tp=2"], "", tp),
        # Each rank has norms' gradients of its tokens.
        expect("tp and sp", ["tp=2"], sp, tp_sp | each("update", "all_reduce", "tp", [EMBED] * 2)),
        # Gathers of activations are cheap to repeat, for their memory.
        expect("tp and sp, recompute", ["tp=2"], sp.replace("none", "selective"),
               tp_sp | each("update", "all_reduce", "tp", [EMBED] * 2) | {("backward", "all_gather", "tp", STREAM): 4}),
        expect("zero 1", ["dp=2"], zero(1), each("update", "reduce_scatter", "dp", WEIGHTS) | each("update", "all_gather", "dp", WEIGHTS)),
        expect("zero 2", ["dp=2"], zero(2), each("backward", "reduce_scatter", "dp", WEIGHTS) | each("update", "all_gather", "dp", WEIGHTS)),
        expect("zero 3", ["dp=2"], zero(3),
               each("forward", "all_gather", "dp", WEIGHTS) | each("backward", "all_gather", "dp", WEIGHTS) | each("backward", "reduce_scatter", "dp", WEIGHTS)),
        expect("dp and tp", ["dp=2", "tp=2"], "", tp | each("update", "all_reduce", "dp", split)),
        expect("zero 3 and tp and sp", ["dp=2", "tp=2"], sp + zero(3),
               tp_sp | each("forward", "all_gather", "dp", split) | each("backward", "all_gather", "dp", split) | each("backward", "reduce_scatter", "dp", split)
               | each("update", "all_reduce", "tp", [EMBED // 2] * 2)),
    ]
    return not all(results)


sys.exit(main())
