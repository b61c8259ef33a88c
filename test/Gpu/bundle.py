"""Packs what a machine with a GPU needs to confirm this build there, and nothing else:

    python3 test/Gpu/bundle.py [FOLDER [STAGE...]]   ->  build/gpu, build/gpu.tar.gz (under 50 MiB)

The launcher with its libraries, plans for the CPU and the GPU, tokens, and the scripts;
there, `python3 gpu/check.py` needs no compiler, no network and no package (PyTorch only
where speed is compared).
"""
import json
import os
import pathlib
import random
import re
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile

import cases

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BIN = pathlib.Path(os.environ.get("MESHWORK_BIN", ROOT / "build" / "bin"))
LIMIT = 50 << 20
# What every Linux has, in the version that its other libraries were made for.
OF_THE_SYSTEM = ("libc.so", "libm.so", "libdl.so", "libpthread.so", "librt.so", "ld-linux",
                 "libstdc++.so", "libgcc_s.so")
# The newest versions of those that may be asked for: Ubuntu 22.04's, older than Debian 12's.
NEWEST = {"GLIBC": (2, 35), "GLIBCXX": (3, 4, 30), "CXXABI": (1, 3, 13)}
TOKENS = 1 << 20


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


def example(name):
    return json.loads((ROOT / "examples" / f"{name}.json").read_text())


def tiny_plans(out):
    for family, name in cases.TINY.items():
        config = cases.config(example(name), {})
        for layout, (axes, more) in cases.LAYOUTS.items():
            for device, arch in (("cpu", "x86-64-v3"), ("cuda", "native")):
                if device == "cpu" and layout != "one":
                    continue
                shape = sections(axes, cases.TINY_BATCH, 1, cases.TINY_SEQUENCE, "f32", device,
                                 arch, **more)
                compile_plan(out, f"{family}-{layout}-{device}", config, shape)


def compared_plans(out):
    for name, case in cases.COMPARED.items():
        config = example(case["from"])
        # Two layers are as many kinds of instructions as twelve.
        layers = {"n_layer": 2} if "n_layer" in config else {"num_hidden_layers": 2}
        for precision in case.get("precisions", cases.PRECISIONS):
            keys = cases.PRECISIONS[precision]
            spec = sections({"dp": 1}, cases.COMPARED_MICRO, cases.COMPARED_MICRO, cases.SEQUENCE, keys["compute"],
                            "cuda", "native", precision=keys)
            spec["batch"].update(case.get("batch", {}))
            compile_plan(out, f"compare-{name}-{precision}", {**config, **layers}, spec,
                         "--with-cpu-code", "x86-64-v3")


def timed_plans(out):
    for name, case in cases.TIMED.items():
        spec = sections({"dp": 1}, case["batch"], case["batch"], cases.SEQUENCE, "bf16", "cuda",
                        "native", recompute={"policy": case["recompute"]},
                        precision=cases.PRECISIONS[case.get("precision", "bf16")],
                        target={"epilogues": case.get("epilogues", "auto")})
        config = cases.config(example(case["from"]), case["changes"])
        compile_plan(out, f"timed-{name}", config, spec)
        (out / "configs" / f"{name}.json").write_text(json.dumps(config))


def check_versions(path):
    """A machine with a GPU may have an older system than the one that builds."""
    listing = subprocess.run(["objdump", "-p", path], check=True, capture_output=True, text=True)
    for name, version in re.findall(r"\b(GLIBC|GLIBCXX|CXXABI)_(\d[\d.]*)$", listing.stdout, re.MULTILINE):
        if tuple(map(int, version.split("."))) > NEWEST[name]:
            sys.exit(f"{path} needs {name}_{version}, newer than {'.'.join(map(str, NEWEST[name]))}: build on an "
                     "older system")


def copy_launcher(out):
    shutil.copy2(BIN / "meshwork-run", out)
    listing = subprocess.run(["ldd", BIN / "meshwork-run"], check=True, capture_output=True, text=True)
    for line in listing.stdout.splitlines():
        parts = line.split()
        if "not found" in line:
            sys.exit(f"meshwork-run lacks {parts[0]}")
        if len(parts) > 2 and parts[1] == "=>" and not parts[0].startswith(OF_THE_SYSTEM):
            shutil.copy2(parts[2], out / "lib" / parts[0])
    for path in (out / "meshwork-run", *(out / "lib").iterdir()):
        check_versions(path)


def copy_scripts(out):
    for path in (HERE / "cases.py", HERE / "check.py", HERE / "torch_step.py",
                 *(ROOT / "test" / "Equivalence").glob("[a-s]*.py")):
        shutil.copy2(path, out)


# What check.py's stages need.
PLANS = {"kernels": compared_plans, "ranks": tiny_plans, "sanitizer": None, "speed": timed_plans}


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "gpu"
    stages = sys.argv[2:] or PLANS
    shutil.rmtree(folder, ignore_errors=True)
    for part in ("plans", "lib", "configs"):
        (folder / part).mkdir(parents=True)
    copy_launcher(folder)
    copy_scripts(folder)
    draw = random.Random(0)
    (folder / "tokens.u16").write_bytes(
        struct.pack(f"<{TOKENS}H", *(draw.randrange(250) for _ in range(TOKENS))))
    for stage in stages:
        if PLANS[stage]:
            PLANS[stage](folder)
    archive = folder.with_suffix(".tar.gz")
    with tarfile.open(archive, "w:gz") as out:
        out.add(folder, arcname="gpu")
    size = archive.stat().st_size
    print(f"{archive}: {size / (1 << 20):.1f} MiB")
    if size > LIMIT:
        sys.exit(f"{archive} has {size} bytes, at most {LIMIT} are carried")


if __name__ == "__main__":
    main()
