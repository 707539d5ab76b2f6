"""Neighbours of the access unit's blocks: payloads made from golden objects, and a descriptor cache."""

from itertools import accumulate

from amaranth.hdl import Elaboratable, Module
from amaranth.lib import stream

from tilewright.golden.tmau.tile import (
    bounding_box,
    counts,
    extent,
    footprint,
    gathers,
    pitch,
    row_bytes,
    spatial_dimensions,
    tx_bytes,
    unit_bytes,
)
from tilewright.hw.tmau.descriptor.cache import DescriptorCache
from tilewright.spec import NAN_FILL, Fill, Mode

__all__ = ["FedCache", "checked_payload", "listed_payload", "show_dimensions"]

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
        "bytes": tx_bytes(tmap),
        **(_pixels(tmap) if tmap.mode == Mode.IM2COL else _box(tmap, gapless)),
    }


def listed_payload(tmap, params):
    """``ListedLayout`` of each of the five dimensions, as a list; what means nothing is missing."""
    listed = _listed_pixels(tmap) if tmap.mode == Mode.IM2COL else _listed_box(tmap)
    listed["stride"] = [stride % (1 << params.addr_width) for stride in listed["stride"]]
    return [{name: values[d] for name, values in listed.items() if values[d] is not None} for d in range(5)]


async def show_dimensions(ctx, dut, lists):
    """Testbench in the background: shows the dimensions of each item of ``dut.i`` as a descriptor cache does.

    Parameters
    ----------
    ctx : SimulatorContext
    dut : Component
        With ``i`` and ``dimensions``, a ListSignature.
    lists : sequence of lists
        Of each item, see :func:`listed_payload`.
    """
    item, number = 0, 0
    while True:
        if item < len(lists) and number < 5:
            ctx.set(dut.dimensions.listed, lists[item][number])
        ports = dut.i.valid & dut.i.ready, dut.dimensions.look, dut.dimensions.number
        *_, taken, look, wanted = await ctx.tick().sample(*ports)
        if taken:
            item, number = item + 1, 0
        elif look:
            number = wanted


def _box(tmap, gapless):
    """Members of a map in tile mode."""
    listed = _listed_box(tmap)
    strides, steps, run = listed["stride"], listed["traversal"], listed["bytes"]
    folds = gapless and steps[0] == 0
    return {
        "gather": steps[0] > 0,
        "contiguous": [folds and steps[k + 1] == 0 and strides[k + 1] == run[k] for k in range(4)],
    }


def _listed_box(tmap):
    unused = 5 - tmap.rank
    steps = [tmap.traversal[0] if gathers(tmap) else 1, *tmap.traversal[1:], *[1] * unused]
    taken = [*counts(tmap), *[1] * unused]
    return {
        "size": [size - 1 for size in (*tmap.size, *[1] * unused)],
        "stride": [unit_bytes(tmap), *tmap.stride, *[0] * unused],
        "traversal": [step - 1 for step in steps],
        "count": taken,
        "bytes": list(accumulate(taken[1:], int.__mul__, initial=row_bytes(tmap))),
    }


def _listed_pixels(tmap):
    """Dimensions are C, W, H, D, N."""
    spatial = spatial_dimensions(tmap)
    channel = tmap.rank - 2 if tmap.interleave else 0
    absent = [None] * (3 - len(spatial))
    order = [channel, *spatial, *absent, tmap.rank - 1]
    strides = [unit_bytes(tmap), *tmap.stride]
    lows, highs = bounding_box(tmap)
    return {
        "size": [0 if d is None else tmap.size[d] - 1 for d in order],
        "stride": [0 if d is None else strides[d] for d in order],
        "traversal": [0, *(0 if d is None else tmap.traversal[d] - 1 for d in order[1:])],
        "low": [None, *lows, *[0 for _ in absent], None],
        "high": [None, *highs, *[1 for _ in absent], None],
        "count": [1 if tmap.interleave else tmap.channels, *[None] * 4],
        "bytes": [row_bytes(tmap), *[tx_bytes(tmap)] * 4],
    }


def _pixels(tmap):
    """Members of a map in im2col mode."""
    broken = [corner for corner in tmap.lower if corner < 0] + [corner for corner in tmap.upper if corner > 0]
    return {
        "pixels": tmap.pixels - 1,
        "store_corner": {"broken": bool(broken), "upper": not any(corner < 0 for corner in tmap.lower)},
    }


class FedCache(Elaboratable):
    """A descriptor cache with a register before it, as it needs to know the next command. Commands go to ``i``.

    The other ports are those of the cache.

    Parameters
    ----------
    params : TmauParams

    Attributes
    ----------
    cache : DescriptorCache
    """

    def __init__(self, params):
        self.cache = cache = DescriptorCache(params)
        self.i = stream.Signature(cache.i.payload.shape()).flip().create()
        for name in cache.signature.members:
            if name not in ("i", "moves", "ahead"):
                setattr(self, name, getattr(cache, name))

    def elaborate(self, platform):
        m = Module()
        m.submodules.cache = cache = self.cache
        moves = ~cache.i.valid | cache.i.ready
        m.d.comb += [cache.moves.eq(moves), cache.ahead.eq(self.i.payload.descriptor), self.i.ready.eq(moves)]
        with m.If(moves):
            m.d.sync += [cache.i.valid.eq(self.i.valid), cache.i.payload.eq(self.i.payload)]
        return m
