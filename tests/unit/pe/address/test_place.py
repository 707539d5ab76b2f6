"""A coordinate's share of page number and offset, two cycles later, whatever pauses there are."""

import random

from amaranth import Module
from amaranth.lib import wiring

from tilewright.hw.pe.address.place import Place, offset_mask
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.sim.pysim.simulate import simulate

SEED = 20261121
PARAMS = PE_PRESETS["default"]
LATENCY = 2


class _MaskedPlace(wiring.Component):
    """A Place with its mask."""

    def __init__(self):
        self.place = Place(PARAMS)
        members = dict(self.place.signature.members)
        del members["mask"]
        super().__init__(members)

    def elaborate(self, platform):
        m = Module()
        m.submodules.place = place = self.place
        for name in self.signature.members:
            port, inner = getattr(self, name), getattr(place, name)
            m.d.comb += port.eq(inner) if name in ("page", "offset") else inner.eq(port)
        m.d.comb += place.mask.eq(offset_mask(m, self.enable, self.page_log2, self.shift))
        return m


def test_shares():
    dut = _MaskedPlace()
    rng = random.Random(SEED)

    async def run(ctx):
        wanted = []
        while len(wanted) < 300:
            coordinate, page_log2 = rng.getrandbits(16), rng.randrange(16)
            pages_below, shift = rng.randint(0, PARAMS.pages), rng.randrange(21)
            enable = rng.random() < 0.7
            if enable:
                place = coordinate % (1 << page_log2)
                page = (coordinate >> page_log2) % PARAMS.pages * pages_below
                wanted.append((page % PARAMS.pages, (place << shift) % (1 << 20)))
            fields = {"coordinate": coordinate, "page_log2": page_log2, "pages_below": pages_below, "shift": shift}
            for name, value in (fields | {"enable": enable}).items():
                ctx.set(getattr(dut, name), value)
            await ctx.tick()
            if len(wanted) >= LATENCY:
                assert (ctx.get(dut.page), ctx.get(dut.offset)) == wanted[-LATENCY]

    print(f"seed {SEED}")
    simulate(dut, run)
