"""Barrier operations, register accesses and reads of the bus: order, latency and errors."""

import numpy as np
import pytest

from tilewright.hw.core.program.fetch import READER_ID
from tilewright.hw.core.program.ports import PATIENCE, AccessShare, BarrierCaller, BusShare
from tilewright.hw.smem.params import SmemParams
from tilewright.spec import BarrierOp
from tilewright.verify.pysim.axi import AxiMemory
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, receive, send, watch_stream

PARAMS = SmemParams(4096)
WAIT = {"op": BarrierOp.TRY_WAIT, "address": 64, "value": 1}


def run(call, answers, mode="none", flips=(), give_up=None):
    """How a call ends: failed, passed, the cycle; and what was asked."""
    dut, out = elaborated(BarrierCaller, PARAMS), {"asked": []}
    stall = STALL_MODES[mode]["stall"]

    async def caller(ctx):
        ctx.set(dut.i.payload, call)
        ctx.set(dut.i.valid, 1)
        cycle = 0
        while True:
            ctx.set(dut.flip.valid, cycle in dict(flips))
            ctx.set(dut.flip.address, dict(flips).get(cycle, 0))
            ctx.set(dut.give_up, give_up is not None and cycle >= give_up)
            _, _, ready, failed, passed = await ctx.tick().sample(dut.i.ready, dut.failed, dut.passed)
            if ready:
                out["end"] = failed, passed, cycle
                ctx.set(dut.i.valid, 0)
                return
            cycle += 1

    async def barriers(ctx):
        for answer in answers:
            asked, _ = await receive(ctx, dut.requests, 1, stall=stall, seed=len(out["asked"]))
            out["asked"] += [(item.op, item.address, item.value) for item in asked]
            await send(ctx, dut.results, [answer], idle=stall, seed=len(out["asked"]))

    simulate(dut, caller, barriers, background=[watch_stream(dut.requests)], deadline=2000)
    return out["end"], out["asked"]


def test_when_it_is_asked_again():
    """Two cycles after the flip of that barrier; after ``PATIENCE`` cycles without one."""
    answers = [{"done": 0, "error": 0}, {"done": 1, "error": 0}]
    (_, _, first), _ = run(WAIT, answers, flips=[(5, 64)])
    (_, _, other), _ = run(WAIT, answers, flips=[(5, 72)])
    assert first == 8 and other == 2 + PATIENCE + 1


COUNT = 30


@pytest.mark.parametrize("mode", STALL_MODES)
def test_answers(mode):
    dut, stalls, order = elaborated(AccessShare), STALL_MODES[mode], []

    def source(number):
        async def access(ctx):
            port = dut.sources[number]
            for index in range(COUNT):
                await send(
                    ctx, port.requests, [{"address": 4 * index, "data": number}], idle=stalls["idle"], seed=index
                )
                (answer,), _ = await receive(ctx, port.answers, 1, stall=stalls["stall"], seed=index)
                assert answer.data == 1000 * number + 4 * index

        return access

    async def registers(ctx):
        for index in range(2 * COUNT):
            (access,), _ = await receive(ctx, dut.accesses.requests, 1, stall=stalls["stall"], seed=index)
            order.append(access.data)
            answer = {"data": 1000 * access.data + access.address}
            await send(ctx, dut.accesses.answers, [answer], idle=stalls["idle"], seed=~index & 0xFF)

    simulate(dut, source(0), source(1), registers, background=[watch_stream(dut.accesses.requests)])
    if mode == "none":
        assert order == COUNT * [0, 1] or order == COUNT * [1, 0]


def test_latency():
    """A cycle to decide who begins; then at once."""
    dut = elaborated(AccessShare)

    async def bench(ctx):
        ctx.set(dut.sources[1].requests.valid, 1)
        assert not ctx.get(dut.accesses.requests.valid)
        await ctx.tick()
        assert ctx.get(dut.accesses.requests.valid)
        ctx.set(dut.accesses.requests.ready, 1)
        assert ctx.get(dut.sources[1].requests.ready) and not ctx.get(dut.sources[0].requests.ready)

    simulate(dut, bench)


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
