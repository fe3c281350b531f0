"""Values by a hash of their places: those of benchmarks/shapes/values.cpp."""

import math

import numpy as np

CHUNK = 1 << 20  # so that what is left over of making large arrays is small


def _hashes(count, salt):
    """(first place, hashes) of chunks."""
    for first in range(0, count, CHUNK):
        x = np.arange(first, min(count, first + CHUNK), dtype=np.uint32)
        x *= np.uint32(0x9E3779B1)
        x += np.uint32(salt * 0x85EBCA77 & 0xFFFFFFFF)
        for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
            x ^= x >> np.uint32(shift)
            x *= np.uint32(factor)
        yield first, x ^ (x >> np.uint32(16))


def _filled(shape, dtype, salt, value):
    result = np.empty(math.prod(shape), dtype)
    for first, hashes in _hashes(result.size, salt):
        result[first:first + hashes.size] = value(hashes)
    return result.reshape(shape)


def floats(shape, salt, low=-1.0, high=1.0):
    return _filled(shape, np.float32, salt,
                   lambda h: low + (high - low) * ((h >> np.uint32(8)).astype(np.float64) * 2.0**-24))


def octets(shape, salt, dtype=np.uint8):
    return _filled(shape, np.uint8, salt, lambda h: h >> np.uint32(24)).view(dtype)


def places(count, salt, below):
    return _filled([count], np.int64, salt, lambda h: h.astype(np.int64) % below)


def difference(results, path, moments):
    """Of results in a file, one after the other as they lie in memory, from those given: the largest, as a
    share of the largest magnitude of a result; of integers, the share of elements that differ. With
    `moments`, that of mean and deviation, as a share of the deviation. None where it is no number."""
    written = np.fromfile(path, np.uint8)
    if written.size != sum(r.nbytes for r in results):
        return None
    worst, at = 0.0, 0
    for expected in results:
        found = written[at:at + expected.nbytes].view(expected.dtype).reshape(expected.shape)
        at += expected.nbytes
        worst = max(worst, _difference(found, expected, moments))
    return worst if math.isfinite(worst) else None


def _difference(found, expected, moments):
    if expected.dtype.kind in "iub":
        return float(np.mean(found != expected))
    if not np.isfinite(found).all():
        return math.inf
    if moments:
        off = max(abs(found.mean(dtype=np.float64) - expected.mean(dtype=np.float64)),
                  abs(found.std(dtype=np.float64) - expected.std(dtype=np.float64)))
        return float(off / expected.std(dtype=np.float64))
    scale = float(np.abs(expected).max())
    return float(np.abs(found - expected).max()) / scale if scale else float(np.abs(found).max())
