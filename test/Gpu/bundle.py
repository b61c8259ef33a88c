"""Packs what a machine with a GPU needs to confirm this build there, and nothing else:

    python3 test/Gpu/bundle.py [--small] [FOLDER [STAGE...]]   ->  build/gpu, build/gpu.tar.gz (under 56 MiB)

The launcher with its libraries, plans for the CPU and the GPU, tokens, and the scripts;
there, `python3 gpu/check.py` needs no compiler, no network and no package (PyTorch only
where speed is compared). With --small all models are tiny: for tests in an emulator.
"""
import argparse
import json
import pathlib
import random
import re
import shutil
import struct
import subprocess
import sys
import tarfile
import time

import machine
from plans import BIN, PLANS, ROOT

HERE = pathlib.Path(__file__).resolve().parent
LIMIT = 56 << 20
# What every Linux has, in the version that its other libraries were made for.
OF_THE_SYSTEM = ("libc.so", "libm.so", "libdl.so", "libpthread.so", "librt.so", "ld-linux",
                 "libstdc++.so", "libgcc_s.so")
# The newest versions of those that may be asked for: Ubuntu 22.04's, older than Debian 12's.
NEWEST = {"GLIBC": (2, 35), "GLIBCXX": (3, 4, 30), "CXXABI": (1, 3, 13)}
TOKENS = 1 << 20


def check_versions(path):
    """A machine with a GPU may have an older system than the one that builds."""
    listing = subprocess.run(["objdump", "-p", path], check=True, capture_output=True, text=True)
    for name, version in re.findall(r"\b(GLIBC|GLIBCXX|CXXABI)_(\d[\d.]*)$", listing.stdout, re.MULTILINE):
        if tuple(map(int, version.split("."))) > NEWEST[name]:
            sys.exit(f"{path} needs {name}_{version}, newer than {'.'.join(map(str, NEWEST[name]))}: build on an "
                     "older system")


# Under the names that they have there.
TESTS = BIN.parent / "test"
PROGRAMS = {"meshwork-run": BIN / "meshwork-run", "wgmma-test": TESTS / "cudaWgmmaTest",
            "copies-test": TESTS / "cudaHostCopyTest", "counted-test": TESTS / "cudaCountedTest"}


def copy_program(name, program, out):
    shutil.copy2(program, out / name)
    listing = subprocess.run(["ldd", program], check=True, capture_output=True, text=True)
    for line in listing.stdout.splitlines():
        parts = line.split()
        if "not found" in line:
            sys.exit(f"{name} lacks {parts[0]}")
        if len(parts) > 2 and parts[1] == "=>" and not parts[0].startswith(OF_THE_SYSTEM):
            shutil.copy2(parts[2], out / "lib" / parts[0])


def copy_programs(out):
    for name, program in PROGRAMS.items():
        copy_program(name, program, out)
    for path in (*(out / name for name in PROGRAMS), *(out / "lib").iterdir()):
        check_versions(path)


# PyTorch's architectures, which the equivalence tests have.
MODELS = ("gpt2.py", "kernels.py", "llama.py", "mixture.py", "models.py", "rotary.py")


def copy_scripts(out):
    for path in (*(x for x in HERE.glob("*.py") if x.name not in ("bundle.py", "layers.py", "plans.py")),
                 *(ROOT / "test" / "Equivalence" / name for name in MODELS)):
        shutil.copy2(path, out)


def copy_machines(out):
    for name in machine.SHIPPED:
        shutil.copy2(ROOT / "examples" / "machines" / f"{name}.toml", out)


def about(small):
    """Which build this is: results of another one are not put beside its own."""
    def git(*command):
        return subprocess.run(["git", "-C", ROOT, *command], capture_output=True, text=True).stdout.strip()
    commit = git("rev-parse", "--short=12", "HEAD") or "unknown"
    changed = " with changes" if git("status", "--porcelain", "--untracked-files=no") else ""
    return {"bundle": f"{commit}{changed}, packed {time.strftime('%Y-%m-%d %H:%M:%S')}", "small": small}


def pack(folder):
    archive = folder.with_suffix(".tar.gz")
    with tarfile.open(archive, "w:gz") as out:
        out.add(folder, arcname="gpu")
    size = archive.stat().st_size
    print(f"{archive}: {size / (1 << 20):.1f} MiB")
    if size > LIMIT:
        sys.exit(f"{archive} has {size} bytes, at most {LIMIT} are carried")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=pathlib.Path, default=ROOT / "build" / "gpu", metavar="FOLDER")
    parser.add_argument("stages", nargs="*", metavar="STAGE", help=", ".join(PLANS))
    parser.add_argument("--small", action="store_true", help="tiny models, for tests in an emulator")
    options = parser.parse_args()
    if unknown := [x for x in options.stages if x not in PLANS]:
        parser.error(f"there is no stage {unknown[0]}: {', '.join(PLANS)}")
    shutil.rmtree(options.folder, ignore_errors=True)
    for part in ("plans", "lib", "configs", "machines"):
        (options.folder / part).mkdir(parents=True)
    copy_programs(options.folder)
    copy_scripts(options.folder)
    copy_machines(options.folder / "machines")
    (options.folder / "bundle.json").write_text(json.dumps(about(options.small)))
    draw = random.Random(0)
    (options.folder / "tokens.u16").write_bytes(
        struct.pack(f"<{TOKENS}H", *(draw.randrange(250) for _ in range(TOKENS))))
    for stage in options.stages or PLANS:
        if PLANS[stage]:
            PLANS[stage](options.folder, options.small)
    pack(options.folder)


if __name__ == "__main__":
    main()
