"""Access unit and command processor read over one port: beats find their way, requests take turns, writes pass."""

import numpy as np
import pytest

from tilewright.hw.core.program.bus_share import BusShare
from tilewright.hw.core.program.lines import READER_ID
from tilewright.sim.pysim.axi_memory import AxiMemory
from tilewright.sim.pysim.simulate import elaborated, simulate

CONTENTS = np.random.default_rng(1).integers(256, size=4096, dtype=np.uint8)


def manager(axi, ident, addresses):
    """Asks for two beats at each address, and checks what comes."""

    async def ask(ctx):
        ctx.set(axi.arid, ident)
        ctx.set(axi.arlen, 1)
        ctx.set(axi.arvalid, 1)
        for address in addresses:
            ctx.set(axi.araddr, address)
            await ctx.tick().until(axi.arready)
        ctx.set(axi.arvalid, 0)

    async def take(ctx):
        ctx.set(axi.rready, 1)
        for address in addresses:
            for beat in range(2):
                rid, word, last = await ctx.tick().sample(axi.rid, axi.rdata, axi.rlast).until(axi.rvalid)
                wanted = int.from_bytes(CONTENTS[address + 16 * beat :][:16].tobytes(), "little")
                assert (rid, word, last) == (ident, wanted, beat)

    return ask, take


@pytest.mark.parametrize("stall", [0.0, 0.5])
@pytest.mark.parametrize("ident", [0, 1, 2])
def test_beats_find_their_way(ident, stall):
    dut = elaborated(BusShare, 12, 128)
    memory = AxiMemory(dut.axi, CONTENTS, stall=stall)
    unit = manager(dut.unit, ident, [32 * number for number in range(60)])
    reader = manager(dut.reader, READER_ID, [2048 + 32 * number for number in range(60)])
    simulate(dut, *unit, *reader, background=[memory.serve])
    assert len(memory.requests) == 120
    if not stall:
        assert {tuple(request[1] for request in memory.requests[at : at + 2]) for at in range(0, 120, 2)} in (
            {(ident, READER_ID)}, {(READER_ID, ident)},
        ), "they take turns"  # fmt: skip


def test_writes_and_latency():
    """Writes pass at once, requests in a cycle; a beat of the reader does not wait for the unit."""
    dut = elaborated(BusShare, 12, 128)

    async def bench(ctx):
        for name, value in (("awvalid", 1), ("awaddr", 77), ("wvalid", 1), ("wstrb", 5), ("bready", 1)):
            ctx.set(getattr(dut.unit, name), value)
            assert ctx.get(getattr(dut.axi, name)) == value
        ctx.set(dut.axi.bvalid, 1)
        assert ctx.get(dut.unit.bvalid)
        ctx.set(dut.unit.arvalid, 1)
        ctx.set(dut.unit.araddr, 64)
        assert not ctx.get(dut.axi.arvalid) and ctx.get(dut.unit.arready)
        await ctx.tick()
        assert ctx.get(dut.axi.arvalid) and ctx.get(dut.axi.araddr) == 64
        ctx.set(dut.axi.rvalid, 1)
        for ident in range(4):
            ctx.set(dut.axi.rid, ident)
            mine = ident == READER_ID
            assert ctx.get(dut.reader.rvalid) == mine and ctx.get(dut.unit.rvalid) != mine
            assert ctx.get(dut.axi.rready) == mine

    simulate(dut, bench)


def test_an_idle_beat_is_nobodys():
    """RREADY does not depend on RID while RVALID is low: before the first beat RID is X."""
    dut = elaborated(BusShare, 12, 128)

    async def bench(ctx):
        assert {ctx.set(dut.axi.rid, rid) or ctx.get(dut.axi.rready) for rid in range(4)} == {0}

    simulate(dut, bench)
