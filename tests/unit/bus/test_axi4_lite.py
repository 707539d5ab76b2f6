"""Address maps, and accesses that reach their target. The proof shows the bridge (tests/formal/bus)."""

from itertools import pairwise

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from support.streams import responder
from tilewright.hw.bus.axi4 import Response
from tilewright.hw.bus.axi4_lite import (
    AccessSignature,
    AccessSplit,
    Axi4LiteSignature,
    Region,
    address_map,
    map_addr_width,
    serve_registers,
)
from tilewright.hw.core.params import CORE_PRESETS, core_params
from tilewright.hw.core.top import Core
from tilewright.verify.pysim.axi import read_word, write_word
from tilewright.verify.pysim.simulate import simulate


def test_regions_by_hand():
    assert address_map(a=12) == {"a": Region(None, 12)}
    # A small region follows a larger one directly; a larger one is aligned to its size.
    regions = address_map(a=12, b=9, c=17, d=17)
    assert [(region.base, region.size) for region in regions.values()] == [
        (0, 4096), (0x1000, 512), (0x20000, 1 << 17), (0x40000, 1 << 17),
    ]  # fmt: skip
    assert map_addr_width(regions) == 19
    assert map_addr_width(address_map(a=12)) == 12


@pytest.mark.parametrize("preset", CORE_PRESETS)
def test_regions_of_the_tops_do_not_overlap(preset):
    tops = (Core(CORE_PRESETS[preset]), *(Core(core_params(preset, [engine])) for engine in ("tmau", "pe", "conv")))
    for top in tops:
        regions = list(top.regions.values())
        assert all(region.base % region.size == 0 for region in regions)
        assert all(low.base + low.size <= high.base for low, high in pairwise(regions))
        assert regions[-1].base + regions[-1].size <= 1 << top.s_axil.signature.addr_width
        assert regions[-1].size == top.params.smem.size_bytes


class Target(wiring.Component):
    """A port of two regions of 32 words; the test plays their targets."""

    def __init__(self):
        accesses = Out(AccessSignature())
        super().__init__({"axi": In(Axi4LiteSignature(8)), "low": accesses, "high": accesses})

    def elaborate(self, platform):
        m = Module()
        regions = address_map(low=7, high=7)
        serve_registers(m, self.axi, regions, low=wiring.flipped(self.low), high=wiring.flipped(self.high))
        return m


def memory(accesses, contents, log, seed):
    """A background target: 32 words, of which the last refuses."""

    def reply(item):
        log.append((item.address, item.write))
        index, error = item.address // 4, item.address // 4 == 31
        if item.write and not error:
            contents[index] = item.data
        return {"data": contents[index], "error": error}

    return responder(accesses.requests, accesses.answers, reply, "both", seed=seed)


def test_accesses_reach_their_target():
    """Half of the words of both targets are written, then all are read."""
    dut = Target()
    contents, log = [[0] * 32, [0] * 32], []
    targets = (dut.low, dut.high)
    background = [
        memory(port, words, log, seed) for seed, (port, words) in enumerate(zip(targets, contents, strict=True))
    ]

    async def script(ctx):
        for address in range(4, 256, 8):
            if address % 128 != 124:
                await write_word(ctx, dut.axi, address, 0x101010 * address)
        for address in range(0, 256, 4):
            word, response = await read_word(ctx, dut.axi, address)
            refused = address % 128 == 124
            assert response == (Response.SLVERR if refused else Response.OKAY)
            assert refused or word == (0x101010 * address if address % 8 else 0)

    simulate(dut, script, background=background)
    assert [address for address, write in log if write] == [
        address % 128 for address in range(4, 256, 8) if address % 128 != 124
    ]


def test_refused_parameters():
    with pytest.raises(ValueError, match=r"^addr_width must be an int from 3 to 32, not 33$"):
        Axi4LiteSignature(33)
    with pytest.raises(ValueError, match=r"^bit must be an int from 2 to 31, not 1$"):
        AccessSplit(1)
