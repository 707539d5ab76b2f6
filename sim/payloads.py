"""Payloads of the TMAU's rooms made from golden objects: what a room would get from its neighbour."""

from itertools import accumulate

from tilewright.golden.spec import Element, Fill
from tilewright.golden.tmau.tile import counts, footprint, pitch, row_bytes

__all__ = ["checked_payload"]

_PATTERNS = {Fill.ZERO: 0, Fill.NAN: 0x7FF77FF7}


def checked_payload(tmap, params):
    """A ``CheckedLayout`` of ``hw.tmau.descriptor`` for a tile-mode map whose footprint fits shared memory."""
    unused = 5 - tmap.rank
    strides = [*tmap.stride, *[0] * unused]
    steps = [*tmap.traversal, *[1] * unused]
    taken = [*counts(tmap), *[1] * unused]
    gapless = pitch(tmap) == row_bytes(tmap)
    run = list(accumulate(taken[1:], int.__mul__, initial=row_bytes(tmap)))
    return {
        "address": tmap.address % (1 << params.addr_width),
        "rank": tmap.rank,
        "element_log2": tmap.element.bytes.bit_length() - 1,
        "sizes": [size - 1 for size in (*tmap.size, *[1] * unused)],
        "strides": [stride % (1 << params.addr_width) for stride in strides],
        "counts": taken,
        "traversals": [step - 1 for step in steps[1:]],
        "run_bytes": run,
        "contiguous": [gapless and steps[k + 1] == 1 and strides[k] == run[k] for k in range(4)],
        "gapless": gapless,
        "pitch": pitch(tmap),
        "footprint": footprint(tmap),
        "too_large": 0,
        "swizzle": tmap.swizzle,
        "fill": _PATTERNS.get(tmap.fill, tmap.fill_constant),
        "tf32": tmap.element == Element.TF32,
    }
