"""Shares of coordinates in page numbers and offsets, two cycles later, whatever pauses there are."""

import random

from tilewright.hw.pe.address.places import Places
from tilewright.hw.pe.params import LANES, PE_PRESETS
from tilewright.sim.pysim.simulate import simulate

SEED = 20261121
PARAMS = PE_PRESETS["default"]
LATENCY = 2


def shares(coordinate, page_log2, pages_below, shift):
    page = (coordinate >> page_log2) % PARAMS.pages * pages_below
    return page % PARAMS.pages, (coordinate % (1 << page_log2) << shift) % (1 << 20)


def test_shares():
    dut = Places(PARAMS)
    rng = random.Random(SEED)

    async def run(ctx):
        wanted = []
        while len(wanted) < 300:
            coordinates, page_log2 = [rng.getrandbits(16) for _ in range(LANES)], rng.randrange(16)
            pages_below, shift = rng.randint(0, PARAMS.pages), rng.randrange(21)
            enable = rng.random() < 0.7
            if enable:
                wanted.append([shares(coordinate, page_log2, pages_below, shift) for coordinate in coordinates])
            fields = {"coordinates": coordinates, "page_log2": page_log2, "pages_below": pages_below, "shift": shift}
            for name, value in (fields | {"enable": enable}).items():
                ctx.set(getattr(dut, name), value)
            await ctx.tick()
            if len(wanted) >= LATENCY:
                assert list(zip(ctx.get(dut.pages), ctx.get(dut.offsets), strict=True)) == wanted[-LATENCY]

    print(f"seed {SEED}")
    simulate(dut, run)
