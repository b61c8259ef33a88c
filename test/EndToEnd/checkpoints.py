"""Reads checkpoints by what runtime/checkpoint/README.md says alone: hashes every byte,
and puts boxes together. XXH3 is the system's library."""
import ctypes
import json
import pathlib
import re
import shutil

import numpy as np

_PIECE = 4 << 20
_WIDTHS = {"F32": 4, "BF16": 2}


class _Hash(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]


_xxh3 = ctypes.CDLL("libxxhash.so.0").XXH3_128bits
_xxh3.restype = _Hash
_xxh3.argtypes = [ctypes.c_char_p, ctypes.c_size_t]


def xxh3_128(data):
    found = _xxh3(data, len(data))
    return f"{found.high:016x}{found.low:016x}"


def require(holds, *what):
    if not holds:
        raise AssertionError(" ".join(map(str, what)))


def manifest(folder):
    """The manifest of a checkpoint; its last line is the hash of all before it."""
    data = (pathlib.Path(folder) / "manifest.json").read_bytes()
    last = data.rstrip(b"\n").rfind(b"\n") + 1
    found = json.loads(data)
    require(found["xxh3_128"] == xxh3_128(data[:last]), folder, "its hash")
    require((found["format"], found["version"]) == ("meshwork-checkpoint", 1), folder, "its format")
    require(json.loads(data[last - 2:last - 1].replace(b",", b"{}")) == {}, folder, "its last line")
    return found


def _file(folder, entry):
    data = (folder / entry["name"]).read_bytes()
    require(len(data) == entry["bytes"], entry["name"], "has", len(data), "bytes")
    hashes = [xxh3_128(data[at:at + _PIECE]) for at in range(0, len(data), _PIECE)]
    require(hashes == entry["hashes"], entry["name"], "its hashes")
    return data


def _names(data):
    """Name -> first byte, of a safetensors file."""
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__")
    return {name: (8 + length + entry["data_offsets"][0], entry) for name, entry in header.items()}


def read(folder):
    """(manifest, (tensor, state) -> array); every element must be there once."""
    folder = pathlib.Path(folder)
    found = manifest(folder)
    files = [_file(folder, entry) for entry in found["files"]]
    require(set(entry["name"] for entry in found["files"]) | {"manifest.json"}
            == set(path.name for path in folder.iterdir()), folder, "other files")
    headers = [_names(data) if entry["name"].endswith("safetensors") else None
               for entry, data in zip(found["files"], files)]
    states = {}
    for tensor in found["tensors"]:
        for state in tensor["states"]:
            type_ = np.dtype({"F32": np.float32, "BF16": np.uint16}[state["dtype"]])
            whole, times = np.zeros(tensor["shape"], type_), np.zeros(tensor["shape"], int)
            for file, offset, begin, extent in state["boxes"]:
                at = tuple(slice(b, b + n) for b, n in zip(begin, extent))
                ranges = ",".join(f"{s.start}:{s.stop}" for s in at)
                start, entry = headers[file].pop(f"{tensor['name']}/{state['name']}[{ranges}]")
                require((start, entry["dtype"], entry["shape"]) == (offset, state["dtype"], extent), entry)
                whole[at] = np.frombuffer(files[file], type_, int(np.prod(extent)), offset).reshape(extent)
                times[at] += 1
            require((times == 1).all(), tensor["name"], state["name"], "is not covered once")
            states[tensor["name"], state["name"]] = whole
    require(not any(headers), "boxes that the manifest does not list")
    return found, states


def complete(folder):
    """Checkpoints with a manifest, newest first."""
    return sorted((path.parent for path in pathlib.Path(folder).glob("step-*/manifest.json")
                   if re.fullmatch(r"step-\d{10}", path.parent.name)), reverse=True)


def seal(folder, found):
    """Writes `found` as the manifest, with the hash of itself."""
    found = {key: value for key, value in found.items() if key != "xxh3_128"}
    text = json.dumps(found, separators=(",", ":"))[:-1] + ",\n"
    (pathlib.Path(folder) / "manifest.json").write_text(
        f'{text}"xxh3_128":"{xxh3_128(text.encode())}"}}\n')


def change(folder, copy, state, size, seed):
    """A copy of a checkpoint with each element of a state, in f32, times 1 - size or 1 + size."""
    shutil.copytree(folder, copy)
    found, chance = manifest(folder), np.random.default_rng(seed)
    for number, entry in enumerate(found["files"]):
        data = bytearray((copy / entry["name"]).read_bytes())
        for tensor in found["tensors"]:
            for one in tensor["states"]:
                for file, offset, _, extent in one["boxes"] if one["name"] == state else ():
                    if file == number:
                        values = np.frombuffer(data, np.float32, int(np.prod(extent)), offset)
                        values *= (1 + size * chance.choice((-1, 1), values.shape)).astype(np.float32)
        (copy / entry["name"]).write_bytes(data)
        entry["hashes"] = [xxh3_128(bytes(data[at:at + _PIECE])) for at in range(0, len(data), _PIECE)]
    seal(copy, found)
