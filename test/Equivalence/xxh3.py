"""XXH3-64 of names, by its published specification: 4 to 128 bytes, seed 0.

The streams of random numbers are named by it; see runtime/io/Init.h."""

# The first 136 of the specification's 192 default secret bytes.
_SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79"
    "e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c3c2852bb"
    "91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8a8fa763fe39c"
    "343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3")
_MASK = (1 << 64) - 1
_PRIME64_1 = 0x9E3779B185EBCA87


def _u64(data, at):
    return int.from_bytes(data[at:at + 8], "little")


def _fold(a, b):
    product = a * b
    return (product & _MASK) ^ (product >> 64)


def _avalanche(h):
    h ^= h >> 37
    h = h * 0x165667919E3779F9 & _MASK
    return h ^ (h >> 32)


def _rotate(h, bits):
    return (h << bits | h >> (64 - bits)) & _MASK


def _of_4_to_8(data):
    first = int.from_bytes(data[:4], "little")
    last = int.from_bytes(data[-4:], "little")
    h = (last + (first << 32)) ^ _u64(_SECRET, 8) ^ _u64(_SECRET, 16)
    h ^= _rotate(h, 49) ^ _rotate(h, 24)
    h = h * 0x9FB21C651E98DF25 & _MASK
    h ^= (h >> 35) + len(data)
    h = h * 0x9FB21C651E98DF25 & _MASK
    return h ^ (h >> 28)


def _of_9_to_16(data):
    low = _u64(data, 0) ^ _u64(_SECRET, 24) ^ _u64(_SECRET, 32)
    high = _u64(data, len(data) - 8) ^ _u64(_SECRET, 40) ^ _u64(_SECRET, 48)
    swapped = int.from_bytes(low.to_bytes(8, "little"), "big")
    return _avalanche(len(data) + swapped + high + _fold(low, high) & _MASK)


def _of_17_to_128(data):
    total = len(data) * _PRIME64_1
    pairs = (len(data) + 31) // 32  # blocks of 16 from each end
    for i in range(pairs):
        for at, secret in ((16 * i, 32 * i), (len(data) - 16 * (i + 1), 32 * i + 16)):
            total += _fold(_u64(data, at) ^ _u64(_SECRET, secret),
                           _u64(data, at + 8) ^ _u64(_SECRET, secret + 8))
    return _avalanche(total & _MASK)


def xxh3_64(text):
    data = text.encode("utf-8")
    if 4 <= len(data) <= 8:
        return _of_4_to_8(data)
    if 9 <= len(data) <= 16:
        return _of_9_to_16(data)
    if 17 <= len(data) <= 128:
        return _of_17_to_128(data)
    raise ValueError(f"{text!r} has {len(data)} bytes, expected 4 to 128")
