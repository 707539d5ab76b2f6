"""Payloads of the TMAU's units made from golden objects: what a unit would get from its neighbour."""

from itertools import accumulate

from tilewright.golden.spec import NAN_FILL, Fill, Mode
from tilewright.golden.tmau.im2col import bounding_box, spatial_dimensions
from tilewright.golden.tmau.tile import counts, extent, footprint, gathers, pitch, row_bytes, tx_bytes, unit_bytes

__all__ = ["checked_payload"]

_PATTERNS = {Fill.ZERO: 0, Fill.NAN: NAN_FILL}


def checked_payload(tmap, params):
    """A ``CheckedLayout`` of ``hw.tmau.derive`` for a map whose transfers fit shared memory."""
    last = tmap.address + extent(tmap) - 1
    gapless = pitch(tmap) == row_bytes(tmap)
    return {
        "address": tmap.address,
        "rank": tmap.rank,
        "im2col": tmap.mode == Mode.IM2COL,
        "interleaved": bool(tmap.interleave),
        "element": tmap.element,
        "unit_log2": unit_bytes(tmap).bit_length() - 1,
        "gapless": gapless,
        "gap": pitch(tmap) - row_bytes(tmap),
        "footprint": footprint(tmap),
        "too_large": 0,
        "last": last % (1 << params.addr_width),
        "beyond": last >> params.addr_width > 0,
        "swizzle": tmap.swizzle,
        "fill": _PATTERNS.get(tmap.fill, tmap.fill_constant),
        **(_pixels(tmap, params) if tmap.mode == Mode.IM2COL else _box(tmap, params, gapless)),
    }


def _box(tmap, params, gapless):
    """Members of a map in tile mode."""
    unused = 5 - tmap.rank
    strides = [unit_bytes(tmap), *tmap.stride, *[0] * unused]
    steps = [tmap.traversal[0] if gathers(tmap) else 1, *tmap.traversal[1:], *[1] * unused]
    taken = [*counts(tmap), *[1] * unused]
    run = list(accumulate(taken[1:], int.__mul__, initial=row_bytes(tmap)))
    folds = gapless and steps[0] == 1
    return {
        "gather": steps[0] > 1,
        "sizes": [size - 1 for size in (*tmap.size, *[1] * unused)],
        "strides": [stride % (1 << params.addr_width) for stride in strides],
        "traversals": [step - 1 for step in steps],
        "counts": taken,
        "run_bytes": run,
        "contiguous": [folds and steps[k + 1] == 1 and strides[k + 1] == run[k] for k in range(4)],
    }


def _pixels(tmap, params):
    """Members of a map in im2col mode; dimensions are C, W, H, D, N."""
    spatial = spatial_dimensions(tmap)
    channel = tmap.rank - 2 if tmap.interleave else 0
    absent = [None] * (3 - len(spatial))
    order = [channel, *spatial, *absent, tmap.rank - 1]
    strides = [unit_bytes(tmap), *tmap.stride]
    lows, highs = bounding_box(tmap)
    broken = [corner for corner in tmap.lower if corner < 0] + [corner for corner in tmap.upper if corner > 0]
    return {
        "sizes": [0 if d is None else tmap.size[d] - 1 for d in order],
        "strides": [0 if d is None else strides[d] % (1 << params.addr_width) for d in order],
        "traversals": [0, *(0 if d is None else tmap.traversal[d] - 1 for d in order[1:])],
        "counts": [1 if tmap.interleave else tmap.channels, 0, 0, 0, 0],
        "run_bytes": [row_bytes(tmap), *[tx_bytes(tmap)] * 4],
        "pixels": tmap.pixels - 1,
        "lows": [*lows, *[0 for _ in absent]],
        "highs": [*highs, *[1 for _ in absent]],
        "store_corner": {
            "broken": bool(broken),
            "upper": not any(corner < 0 for corner in tmap.lower),
        },
    }
