# What lit runs, and with which tools: lit BUILD/test
import os
import shutil
import sys

import lit.formats

config.name = "Meshwork"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Equivalence", "Benchmarks", "EndToEnd"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.meshwork_build, "test", "lit")

# A test that hangs is a failure, and the whole suite takes seconds.
try:
    import psutil  # lit needs it for time limits

    lit_config.maxIndividualTestTime = 120
except ImportError:
    pass


def substitute(name, folder):
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        return  # A test that needs it fails with its name.
    # Whole words only: `meshwork` is part of the other names.
    config.substitutions.append((r"(?<![\w./-])%s(?![\w./-])" % name, path))


for tool in ("meshwork", "meshwork-opt", "meshwork-run"):
    substitute(tool, os.path.join(config.meshwork_build, "bin"))
for tool in ("FileCheck", "not", "count", "split-file"):
    substitute(tool, config.llvm_tools)
# Built with the unit tests: what reads PTX without a GPU.
substitute("ptx-check", os.path.join(config.meshwork_build, "test"))
if os.path.exists(os.path.join(config.meshwork_build, "test", "ptx-check")):
    config.available_features.add("emulator")
# Without CUDA's assembler its tests are skipped: "requires: ptxas".
if shutil.which("ptxas") or os.access("/usr/local/cuda/bin/ptxas", os.X_OK):
    config.available_features.add("ptxas")
else:
    lit_config.note("found no ptxas in PATH or /usr/local/cuda/bin: kernels of a GPU are not assembled")
config.substitutions.append(("%python", sys.executable))
config.substitutions.append(("%source", config.meshwork_source))
folders = [*config.mlir_includes.split(";"), os.path.join(config.meshwork_build, "include")]
includes = " ".join("-I " + folder for folder in folders)
config.substitutions.append(("%tblgen", os.path.join(config.llvm_tools, "llvm-tblgen") + " " + includes))
