"""Philox4x32-10 (Salmon et al., SC'11, "Parallel random numbers: as easy as 1, 2, 3")
and the rule by which a training sample is drawn with it (runtime/io/Tokens.h)."""
import numpy as np

_M0, _M1 = 0xD2511F53, 0xCD9E8D57
_W0, _W1 = 0x9E3779B9, 0xBB67AE85
_MASK = 0xFFFFFFFF
SAMPLE_DOMAIN = 0x6E6B6F74


def philox4x32(counter, key):
    """Four 32-bit words of counter and two of key -> four random words."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        p0, p1 = _M0 * c0, _M1 * c2
        c0, c1, c2, c3 = ((p1 >> 32) ^ c1 ^ k0, p1 & _MASK,
                          (p0 >> 32) ^ c3 ^ k1, p0 & _MASK)
        k0, k1 = (k0 + _W0) & _MASK, (k1 + _W1) & _MASK
    return c0, c1, c2, c3


def sample_start(seed, step, index, places):
    """First token of sample `index` of `step`: uniform over `places` windows."""
    words = philox4x32((step & _MASK, step >> 32, index, SAMPLE_DOMAIN),
                       (seed & _MASK, seed >> 32))
    return (words[0] | words[1] << 32) * places >> 64


def batch(data, seed, step, count, sequence):
    """(tokens, targets), int64 [count, sequence], of one optimizer step."""
    places = len(data) - sequence
    starts = [sample_start(seed, step, i, places) for i in range(count)]
    windows = np.stack([data[s:s + sequence + 1] for s in starts]).astype(np.int64)
    return windows[:, :-1], windows[:, 1:]
