"""Where this machine keeps the libraries that the launcher opens, and which versions they are.

    python3 libraries.py     ->   one JSON object a library; run with the launcher's environment

Nothing of NVIDIA's is carried.
"""
import ctypes
import json
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent


def output_of(*command, **how):
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL,
                              **how).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""


# The one that runs this may not be the one that has PyTorch.
PYTHONS = list(dict.fromkeys(filter(None, (sys.executable, shutil.which("python3"), shutil.which("python")))))
ASK = "import sys; print(*sys.path, sys.prefix + '/site-packages', sep='\\n')"
PACKAGES = list(dict.fromkeys(line for python in PYTHONS for line in output_of(python, "-c", ASK).splitlines()
                              if line.endswith(("site-packages", "dist-packages"))))


def found(patterns):
    """Existing paths, in the order of (root, pattern)."""
    return [str(path) for root, pattern in patterns if os.path.isdir(root)
            for path in sorted(pathlib.Path(root).glob(pattern))]


def cuda_folders():
    """Where containers keep the driver, CUDA's toolkit and Python packages cuBLASLt, cuDNN and NCCL:
    the loader may not know."""
    folders = found([("/usr/local/nvidia", "lib64"), ("/usr/lib/wsl", "lib"), ("/usr/local", "cuda*/lib64"),
                     ("/usr/local", "cuda*/targets/*/lib"), *((path, "nvidia/*/lib") for path in PACKAGES)])
    conda = os.path.join(os.environ.get("CONDA_PREFIX", sys.prefix), "lib")
    return folders + ([conda] if found([(conda, "libcublasLt.so*")]) else [])


OUTSIDE = dict(os.environ)  # what PyTorch gets, which brings libraries of its own
# The caller's own folders come first: an emulator's, in tests.
ENVIRONMENT = {**os.environ, "LD_LIBRARY_PATH": os.pathsep.join(
    filter(None, [os.environ.get("LD_LIBRARY_PATH"), str(HERE / "lib"), *cuda_folders()]))}

# What it is for, names in the order in which the launcher tries them, and how to ask for its version.
NEEDED = {
    "driver": ("everything", ["libcuda.so.1"], "cuDriverGetVersion", 1000),
    "cuBLASLt": ("products", ["libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"], "cublasLtGetVersion", 10000),
    "cuDNN": ("--cudnn-attention", ["libcudnn.so.9"], "cudnnGetVersion", 10000),
    "NCCL": ("ranks on several GPUs", ["libnccl.so.2"], "ncclGetVersion", 10000),
}


def number_of(library, function):
    """A version as the library counts it; None where it does not tell."""
    ask = getattr(library, function, None)
    if not ask:
        return None
    if function in ("cublasLtGetVersion", "cudnnGetVersion"):
        ask.restype = ctypes.c_size_t
        return ask()
    number = ctypes.c_int()
    return number.value if ask(ctypes.byref(number)) == 0 else None


def text_of(number, unit):
    """13010 in units of 1000: 13.1; 91900 in units of 10000: 9.19.0."""
    if unit == 1000:
        return f"{number // 1000}.{number % 1000 // 10}"
    return f"{number // unit}.{number % unit // 100}.{number % 100}"


def path_of(name):
    """Of a library that is loaded: the linker's folders are known to it alone."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        paths = {line.split(maxsplit=5)[5].strip() for line in maps if name.split(".so")[0] + ".so" in line}
    return min(paths, key=len, default="unknown")


def look(name):
    use, names, function, unit = NEEDED[name]
    for candidate in names:
        try:
            library = ctypes.CDLL(candidate)
        except OSError:
            continue
        number = number_of(library, function)
        return {"library": name, "for": use, "path": path_of(candidate),
                "version": text_of(number, unit) if number else "not told"}
    return {"library": name, "for": use, "path": None, "version": None, "looked_for": names}


def looked_up():
    """All of them, each in a process of its own: a library may end the one that opens it."""
    rows = []
    for name in NEEDED:
        told = output_of(sys.executable, __file__, name, env=ENVIRONMENT)
        rows.append(json.loads(told) if told.startswith("{") else
                    {"library": name, "for": NEEDED[name][0], "path": None, "version": None})
    return rows


def text(row):
    where = f"{row['version']}, {row['path']}" if row["path"] else "not found"
    return f"{row['library']} (for {row['for']}): {where}"


if __name__ == "__main__":
    print(json.dumps(look(sys.argv[1])))
