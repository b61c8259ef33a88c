"""Reads and writes safetensors files with numpy alone.

Strict: an 8-byte length, a JSON object without duplicate names, offsets that follow
one another without hole or overlap to the end of the file, dtype times shape equal
to the bytes. bf16 is widened to f32 when read.
"""
import json

import numpy as np

_DTYPES = {"F64": np.float64, "F32": np.float32, "F16": np.float16, "BF16": np.uint16,
           "I64": np.int64, "I32": np.int32, "I16": np.int16, "I8": np.int8,
           "U8": np.uint8, "BOOL": np.bool_}
_MAX_HEADER = 100_000_000


def _unique(pairs):
    names = [name for name, _ in pairs]
    if len(set(names)) != len(names):
        raise ValueError(f"duplicate name in header: {sorted(names)}")
    return dict(pairs)


def read_header(path):
    """(name -> entry in order of offsets, metadata, first byte of the data)."""
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        size = file.seek(0, 2)
        if length < 2 or length > _MAX_HEADER or 8 + length > size:
            raise ValueError(f"{path}: header of {length} bytes in a file of {size}")
        file.seek(8)
        header = json.loads(file.read(length).decode("utf-8"),
                            object_pairs_hook=_unique)
    metadata = header.pop("__metadata__", {})
    entries = dict(sorted(header.items(), key=lambda item: item[1]["data_offsets"]))
    end = 0
    for name, entry in entries.items():
        begin, stop = entry["data_offsets"]
        count = int(np.prod(entry["shape"], dtype=object)) if entry["shape"] else 1
        width = np.dtype(_DTYPES[entry["dtype"]]).itemsize
        if begin != end or stop - begin != count * width:
            raise ValueError(f"{path}: {name}: bytes [{begin}, {stop}) after {end}, "
                             f"expected {count} elements of {width} bytes")
        end = stop
    if 8 + length + end != size:
        raise ValueError(f"{path}: {size} bytes, expected {8 + length + end}")
    return entries, metadata, 8 + length


def read(path):
    """Name -> array."""
    entries, _, start = read_header(path)
    arrays = {}
    with open(path, "rb") as file:
        for name, entry in entries.items():
            begin, stop = entry["data_offsets"]
            file.seek(start + begin)
            data = np.frombuffer(file.read(stop - begin), _DTYPES[entry["dtype"]])
            if entry["dtype"] == "BF16":
                data = (data.astype(np.uint32) << 16).view(np.float32)
            arrays[name] = data.reshape(entry["shape"])
    return arrays


def write(path, arrays):
    """Writes name -> array; the dtype of each is kept."""
    codes = {np.dtype(t): code for code, t in _DTYPES.items() if code != "BF16"}
    header, blobs, offset = {}, [], 0
    for name, array in arrays.items():
        blob = np.ascontiguousarray(array).tobytes()
        header[name] = {"dtype": codes[array.dtype], "shape": list(array.shape),
                        "data_offsets": [offset, offset + len(blob)]}
        blobs.append(blob)
        offset += len(blob)
    text = json.dumps(header).encode("utf-8")
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text + b"".join(blobs))
