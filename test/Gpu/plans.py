"""Makes the plans that a bundle carries; see cases.py for what is asked of them."""
import json
import os
import pathlib
import subprocess
import tempfile

import cases

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("MESHWORK_BIN", ROOT / "build" / "bin"))


def toml(sections):
    lines = []
    for name, keys in sections.items():
        lines += [f"[{name}]"] + [f"{k} = {json.dumps(v)}" for k, v in keys.items()]
    return "\n".join(lines) + "\n"


def compile_plan(out, name, config, sections, *options):
    """Plan `name` from a parsed config.json."""
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        (work / "config.json").write_text(json.dumps(config))
        (work / "spec.toml").write_text(toml(sections))
        subprocess.run([BIN / "meshwork", "compile", work / "config.json", "--spec", work / "spec.toml",
                        "-o", out / "plans" / f"{name}.mwplan", *options], check=True)


def sections(axes, batch, micro, sequence, compute, device, arch, **more):
    made = {"mesh": {"axes": [f"{k}={v}" for k, v in axes.items()]},
            "batch": {"global": batch, "micro": micro, "sequence": sequence},
            "precision": {"compute": compute}, "optimizer": cases.OPTIMIZER,
            "target": {"device": device, "arch": arch}}
    for name, keys in more.items():
        made.setdefault(name, {}).update(keys)
    return made


def gpu_arch(small):
    """For an emulator one assembly is enough; it multiplies 8 bits where it is a 9.0."""
    return "sm_90a" if small else "native"


def example(name):
    return json.loads((ROOT / "examples" / f"{name}.json").read_text())


def tiny_plans(out, small):
    for family, name in cases.TINY.items():
        config = cases.config(example(name), {} if small else cases.TINY_CHANGES.get(family, {}))
        for layout, (axes, more) in cases.layouts(family, small).items():
            for device, arch in (("cpu", "x86-64-v3"), ("cuda", gpu_arch(small))):
                if device == "cpu" and layout != "one":
                    continue
                shape = sections(axes, cases.TINY_BATCH, 1, cases.TINY_SEQUENCE, "f32", device,
                                 arch, **more)
                compile_plan(out, f"{family}-{layout}-{device}", config, shape)


def compared_plans(out, small):
    for name, case in cases.COMPARED.items():
        origin, changes = cases.model(case, small)
        config = {**example(origin), **changes}
        # Two layers are as many kinds of instructions as twelve.
        layers = {"n_layer": 2} if "n_layer" in config else {"num_hidden_layers": 2}
        precisions = case.get("precisions", cases.USUAL_PRECISIONS)
        for precision in cases.SMALL["compared"].get(name, []) if small else precisions:
            keys = cases.PRECISIONS[precision]
            spec = sections(case.get("axes", {"dp": 1}), cases.COMPARED_MICRO, case.get("micro", cases.COMPARED_MICRO),
                            cases.sequence(small), keys["compute"], "cuda", gpu_arch(small), precision=keys)
            for section, more in case.get("sections", {}).items():
                spec.setdefault(section, {}).update(more)
            compile_plan(out, f"compare-{name}-{precision}", {**config, **layers}, spec,
                         "--with-cpu-code", "x86-64-v3")


def timed_plan(out, small, name, case):
    batch = cases.batch(case, small)
    spec = sections({"dp": 1}, batch, case.get("micro", batch), cases.sequence(small, case), "bf16", "cuda",
                    gpu_arch(small), recompute={"policy": "auto"}, target={"machine": cases.MACHINE},
                    precision=cases.PRECISIONS[case.get("precision", "bf16")], **case.get("sections", {}))
    origin, changes = cases.model(case, small)
    config = cases.config(example(origin), changes)
    compile_plan(out, f"timed-{name}", config, spec)
    if case.get("apart"):
        spec["target"]["epilogues"] = "never"
        compile_plan(out, f"timed-{name}-apart", config, spec)
    return config


def timed_plans(out, small):
    for name in cases.SMALL["timed"] if small else cases.TIMED:
        config = timed_plan(out, small, name, cases.TIMED[name])
        (out / "configs" / f"{name}.json").write_text(json.dumps(config))


def attention_plans(out, small):
    for name in cases.attention(small):
        timed_plan(out, small, name, cases.ATTENTION[name])


# What check.py's stages need.
PLANS = {"kernels": compared_plans, "ranks": tiny_plans, "sanitizer": None, "machine": None, "speed": timed_plans,
         "attention": attention_plans}
