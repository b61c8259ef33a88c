"""Philox4x32-10 (Salmon et al., SC'11, "Parallel random numbers: as easy as 1, 2, 3")
and what the runtime draws with it: samples (runtime/io/Tokens.h), initial weights
(runtime/io/Init.h), dropout (include/meshwork/Plan/Plan.fbs) and the rounding of weights
(transformer.stochastic_round)."""
import numpy as np

from xxh3 import xxh3_64

_M0, _M1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_W0, _W1 = 0x9E3779B9, 0xBB67AE85
_MASK = 0xFFFFFFFF
_LOW, _SHIFT = np.uint64(_MASK), np.uint64(32)
SAMPLE_DOMAIN = 0x6E6B6F74


def philox4x32(counter, key):
    """Four counter words (numbers or arrays) and two key words -> four words, u64."""
    c0, c1, c2, c3 = np.broadcast_arrays(*(np.asarray(c, np.uint64) for c in counter))
    k0, k1 = key
    for _ in range(10):
        p0, p1 = _M0 * c0, _M1 * c2
        c0, c1, c2, c3 = ((p1 >> _SHIFT) ^ c1 ^ np.uint64(k0), p1 & _LOW,
                          (p0 >> _SHIFT) ^ c3 ^ np.uint64(k1), p0 & _LOW)
        k0, k1 = (k0 + _W0) & _MASK, (k1 + _W1) & _MASK
    return c0, c1, c2, c3


def _split(number):
    return number & _MASK, number >> 32


def sample_start(seed, step, index, places):
    """First token of sample `index` of `step`: uniform over `places` windows."""
    words = philox4x32((*_split(step), index, SAMPLE_DOMAIN), _split(seed))
    return (int(words[0]) | int(words[1]) << 32) * places >> 64


def batch(data, seed, step, count, sequence):
    """(tokens, targets), int64 [count, sequence], of one optimizer step."""
    places = len(data) - sequence
    starts = [sample_start(seed, step, i, places) for i in range(count)]
    windows = np.stack([data[s:s + sequence + 1] for s in starts]).astype(np.int64)
    return windows[:, :-1], windows[:, 1:]


def _permuted(places, count, seed, pool, number, kind):
    """Arrays: where places go, by six rounds of a Feistel network, walked until they are below `count`."""
    half = max(1, -(-int(count - 1).bit_length() // 2))
    mask = np.uint64((1 << half) - 1)
    result, walking = np.asarray(places, np.uint64).copy(), np.ones(len(places), bool)
    while walking.any():
        left, right = result[walking] >> np.uint64(half), result[walking] & mask
        for turn in range(6):
            words = philox4x32((right, pool << 8 | turn, number & _MASK, kind), _split(seed))[0]
            left, right = right, left ^ (words & mask)
        result[walking] = left << np.uint64(half) | right
        walking = result >= count
    return result.astype(np.int64)


def window(sources, sequence, seed, step, index, of_run, order="random", weights=None):
    """(file, start) of a sample, `sources` being the tokens of each file of each source; shares by largest remainder."""
    pool, counter, first = 0, of_run, 0
    files = [tokens for source in sources for tokens in source]
    if weights:
        due = np.array(weights) / np.sum(weights) * 1024
        counts = np.floor(due).astype(int)
        counts[np.argsort(counts - due, kind="stable")[:1024 - counts.sum()]] += 1
        begins = np.cumsum(counts) - counts
        slot = _permuted([of_run % 1024], 1024, seed, 0, of_run // 1024, 0x7478696D)[0]
        pool = int(np.searchsorted(begins, slot, side="right")) - 1
        counter = of_run // 1024 * int(counts[pool]) + int(slot - begins[pool])
        files, first = sources[pool], sum(map(len, sources[:pool]))
    by_epochs = order == "epochs"
    places = np.cumsum([(n - 1) // sequence if by_epochs else n - sequence for n in files])
    total = int(places[-1])
    place = (int(_permuted([counter % total], total, seed, pool, counter // total, 0x636F7065)[0]) if by_epochs
             else sample_start(seed, step, index, total))
    file = int(np.searchsorted(places, place, side="right"))
    start = place - (int(places[file - 1]) if file else 0)
    return first + file, start * (sequence if by_epochs else 1)


def normals(name, shape, seed, mean, deviation):
    """Initial weights, in f64; the runtime's differ by f32 rounding."""
    count = int(np.prod(shape))
    blocks = np.arange((count + 3) // 4, dtype=np.uint64)
    words = philox4x32((blocks & _LOW, blocks >> _SHIFT, *_split(xxh3_64(name))),
                       _split(seed))
    values = []
    for radius, angle in (words[:2], words[2:]):
        length = np.sqrt(-2 * np.log((radius.astype(np.float64) + 1) * 2.0 ** -32))
        turn = 2 * np.pi * angle.astype(np.float64) * 2.0 ** -32
        values += [length * np.cos(turn), length * np.sin(turn)]
    flat = np.stack(values, axis=1).reshape(-1)[:count]
    return mean + deviation * flat.reshape(shape)


def _element_words(name, shape, seed, step):
    """The word of each element of the global tensor `shape`."""
    index = np.arange(int(np.prod(shape)), dtype=np.uint64)
    words = philox4x32((index & _LOW, index >> _SHIFT, step, 0), (seed, xxh3_64(name) & _MASK))
    return words[0].reshape(shape)


def dropout_factors(name, shape, rate, seed, step):
    """0 or 1 / (1 - rate) for each element of the step's global tensor `shape`."""
    kept = _element_words(name, shape, seed, step) >= np.uint64(int(rate * 2 ** 32))
    return np.where(kept, 1 / (1 - rate), 0.0)


def stochastically_rounded(name, master, seed, step):
    """bf16 values, as f32, that the update of `step` makes of a finite f32 master below
    the largest bf16."""
    words = _element_words(name, master.shape, seed, step).astype(np.uint32)
    bits = master.view(np.uint32) + (words & np.uint32(0xFFFF))
    return (bits & np.uint32(0xFFFF0000)).view(np.float32)
