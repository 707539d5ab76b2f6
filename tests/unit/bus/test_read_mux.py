"""Two managers read over one port: everybody gets the beats that were asked for, in order, and requests take turns."""

import numpy as np
import pytest

from tilewright.hw.bus.read_mux import Axi4ReadMux
from tilewright.sim.pysim.axi_memory import AxiMemory
from tilewright.sim.pysim.simulate import simulate

CONTENTS = np.random.default_rng(1).integers(256, size=4096, dtype=np.uint8)


def word_at(address):
    return int.from_bytes(CONTENTS[address : address + 16].tobytes(), "little")


def manager(axi, ident, requests, beats_per_request=2):
    """Two testbenches that ask for ``requests`` (addresses) and check what comes."""

    async def ask(ctx):
        ctx.set(axi.arid, ident)
        ctx.set(axi.arlen, beats_per_request - 1)
        ctx.set(axi.arvalid, 1)
        for address in requests:
            ctx.set(axi.araddr, address)
            await ctx.tick().until(axi.arready)
        ctx.set(axi.arvalid, 0)

    async def take(ctx):
        ctx.set(axi.rready, 1)
        for address in requests:
            for beat in range(beats_per_request):
                rid, word, last = await ctx.tick().sample(axi.rid, axi.rdata, axi.rlast).until(axi.rvalid)
                assert (rid, word, last) == (ident, word_at(address + 16 * beat), beat == beats_per_request - 1)

    return ask, take


@pytest.mark.parametrize("stall", [0.0, 0.5])
@pytest.mark.parametrize("ident", [0, 1])
def test_beats_find_their_way(ident, stall):
    dut = Axi4ReadMux(12, 128)
    memory = AxiMemory(dut.axi, CONTENTS, stall=stall)
    movers = manager(dut.movers, ident, [32 * n for n in range(60)])
    reducer = manager(dut.reducer, 2, [2048 + 32 * n for n in range(60)])
    simulate(dut, *movers, *reducer, background=[memory.serve])
    assert len(memory.requests) == 120
    if not stall:
        assert [request[1] for request in memory.requests] == 60 * [ident, 2], "they take turns"
        assert [request[0] for request in memory.requests] == list(range(120)), "one a cycle"


def test_latency():
    """Requests and beats pass in their cycle."""
    dut = Axi4ReadMux(12, 128)

    async def testbench(ctx):
        ctx.set(dut.reducer.arvalid, 1)
        ctx.set(dut.reducer.arid, 2)
        assert (ctx.get(dut.axi.arvalid), ctx.get(dut.axi.arid)) == (1, 2)
        ctx.set(dut.axi.rvalid, 1)
        ctx.set(dut.axi.rid, 1)
        assert (ctx.get(dut.movers.rvalid), ctx.get(dut.movers.rid), ctx.get(dut.reducer.rvalid)) == (1, 1, 0)

    simulate(dut, testbench)


def test_an_idle_beat_is_nobodys():
    """RREADY does not depend on RID while RVALID is low: before the first beat RID is X."""
    dut = Axi4ReadMux(12, 128)

    async def testbench(ctx):
        ctx.set(dut.movers.rready, 1)
        assert {ctx.set(dut.axi.rid, rid) or ctx.get(dut.axi.rready) for rid in range(4)} == {0}

    simulate(dut, testbench)
