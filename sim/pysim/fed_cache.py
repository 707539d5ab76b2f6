"""A descriptor cache whose commands come as a stream alone."""

from amaranth.hdl import Elaboratable, Module
from amaranth.lib import stream

from tilewright.hw.tmau.descriptor.cache import DescriptorCache

__all__ = ["FedCache"]


class FedCache(Elaboratable):
    """A descriptor cache behind a register, which tells it what comes next. Commands go to ``i``; all else is its own.

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
