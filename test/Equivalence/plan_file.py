"""What is in the file of a plan, behind its frame."""
import ctypes

FRAME_BYTES = 64  # in front of the payload, see Frame.h
ZSTD = b"\x28\xb5\x2f\xfd"  # how a packed one begins


def flat_buffer(plan):
    """The tables of the plan in that file, whichever libzstd packed them."""
    payload = plan.read_bytes()[FRAME_BYTES:]
    if not payload.startswith(ZSTD):
        return payload
    library = ctypes.CDLL("libzstd.so.1")
    size = library.ZSTD_getFrameContentSize
    size.argtypes, size.restype = (ctypes.c_char_p, ctypes.c_size_t), ctypes.c_ulonglong
    unpack = library.ZSTD_decompress
    unpack.argtypes = (ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t)
    whole = ctypes.create_string_buffer(size(payload, len(payload)))
    unpack(whole, len(whole), payload, len(payload))
    return whole.raw
