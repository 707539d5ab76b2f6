"""Barrier unit: cycle numbers, order of service, write-back register. Sequences against the golden are in test_top."""

import pytest
from amaranth.hdl import Elaboratable, Module, Signal
from amaranth.lib.memory import Memory

from tilewright.golden.smem.barrier import Barrier
from tilewright.golden.spec import BarrierOp
from tilewright.hw.smem.barrier import BarrierUnit
from tilewright.hw.smem.params import SmemParams
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.pysim.streams import STALL_MODES, receive, send, watch_stream

SEED = 9
A, B = 0x40, 0x88  # two barriers, in different chunks and different halves


class BarrierOnMemory(Elaboratable):
    """A barrier unit on one memory of chunks, which takes the register when it must, or while ``space`` is high."""

    def __init__(self):
        self.space = Signal(init=1)
        self.unit = BarrierUnit(SmemParams(1024))
        self.memory = Memory(shape=128, depth=64, init=[])

    def elaborate(self, platform):
        m = Module()
        m.submodules.unit = unit = self.unit
        m.submodules.memory = self.memory
        write_port = self.memory.write_port(granularity=8)
        read_port = self.memory.read_port()  # what is being written reads as it was
        back = unit.write_back
        m.d.comb += [
            read_port.addr.eq(unit.fetches.payload),
            read_port.en.eq(unit.fetches.valid),
            unit.fetched.eq(read_port.data),
            back.taken.eq(back.valid & (back.urgent | self.space)),
            write_port.addr.eq(back.payload.chunk),
            write_port.data.eq(back.payload.data),
        ]
        with m.If(back.taken):
            m.d.comb += write_port.en.eq(back.payload.strobe)
        return m

    def stored(self, ctx, address):
        return Barrier.unpack(ctx.get(self.memory.data[address >> 4]) >> 8 * (address & 8) & (1 << 64) - 1)


def request(op, value=1, address=A):
    return {"op": op, "address": address, "value": value}


def run(requests, landed=(), *, mode="none", space=1, start=0):
    """Offers the requests from cycle 0 and the landed bytes, (barrier, bytes), from cycle ``start`` on.

    Returns a dictionary: the cycles in which ``requests``, ``results`` and ``landed`` bytes were transferred,
    ``answers`` as (done, error), ``flips`` and ``errors`` as (cycle, address), the barriers as ``stored``.
    """
    dut = elaborated(BarrierOnMemory)
    unit = dut.unit
    log = {"flips": [], "errors": []}
    stalls = STALL_MODES[mode]

    async def processor(ctx):
        ctx.set(dut.space, space)
        log["requests"] = await send(ctx, unit.requests, requests, idle=stalls["idle"], seed=SEED)

    async def reader(ctx):
        answers, log["results"] = await receive(ctx, unit.results, len(requests), stall=stalls["stall"], seed=SEED)
        log["answers"] = [(answer.done, answer.error) for answer in answers]
        await ctx.tick().repeat(4)
        log["stored"] = {address: dut.stored(ctx, address) for address in (A, B)}

    async def tmau(ctx):
        if start:
            await ctx.tick().repeat(start)
        items = [{"barrier": address, "bytes": count} for address, count in landed]
        log["landed"] = [start + cycle for cycle in await send(ctx, unit.landed, items)]
        await ctx.tick().repeat(4)

    async def watch(ctx):
        cycle = 0
        signals = (unit.flip.valid, unit.flip.address, unit.refused.valid, unit.refused.address)
        async for _, _, flip, flip_address, error, error_address in ctx.tick().sample(*signals):
            if flip:
                log["flips"].append((cycle, flip_address))
            if error:
                log["errors"].append((cycle, error_address))
            cycle += 1

    simulate(dut, processor, reader, tmau, background=[watch, watch_stream(unit.results, "results")])
    return log


SETUP = [request(BarrierOp.INIT, 1), request(BarrierOp.EXPECT_TX, 128), request(BarrierOp.ARRIVE, 1)]


@pytest.mark.parametrize("space", [0, 1])
@pytest.mark.parametrize("mode", STALL_MODES)
def test_one_phase(mode, space):
    polls = [request(BarrierOp.TRY_WAIT, parity) for parity in (0, 1)]
    expect_early = [*SETUP[:1], request(BarrierOp.COMPLETE_TX, 128), *SETUP[1:], *polls]
    log = run(expect_early, mode=mode, space=space)
    assert log["answers"] == [(0, 0), (0, 0), (0, 0), (1, 0), (1, 0), (0, 0)]
    assert [address for _, address in log["flips"]] == [A]
    if space:
        assert log["stored"][A] == Barrier(1, 1, 0, 1)


@pytest.mark.parametrize("space", [0, 1])
def test_rate_and_latency_of_requests(space):
    # On two barriers by turns: without space for the write-back, each operation has to push out the one before.
    operations = [request(BarrierOp.INIT, 1 + n, (A, B)[n % 2]) for n in range(20)]
    log = run(operations, space=space)
    assert log["requests"] == list(range(0, 40, 2))
    assert log["results"] == list(range(2, 42, 2))
    assert log["stored"][A] == Barrier(19, 19)
    assert log["stored"][B] == (Barrier(20, 20) if space else Barrier(18, 18))  # the last is still in the register


def test_landed_bytes_flip_two_cycles_later():
    log = run(SETUP, [(A, 128)], start=10)
    assert log["landed"] == [10]
    assert log["flips"] == [(12, A)]


def test_landed_bytes_follow_a_request_at_once():
    log = run([*SETUP, *[request(BarrierOp.TRY_WAIT, 0)] * 6], [(A, 128)], start=9)
    assert log["requests"] == [0, 2, 4, 6, 8, 11, 13, 15, 17]  # in 10 the landed bytes are worked out
    assert log["landed"] == [9]
    assert log["flips"] == [(11, A)]
    assert [done for done, _ in log["answers"]] == [0, 0, 0, 0, 0, 1, 1, 1, 1]


def test_every_third_cycle_landed_bytes_never_wait():
    polls = [request(BarrierOp.TRY_WAIT, 0)] * 20
    dut = elaborated(BarrierOnMemory)
    unit = dut.unit

    async def processor(ctx):
        await send(ctx, unit.requests, polls)

    async def reader(ctx):
        await receive(ctx, unit.results, len(polls), stall=0.3, seed=SEED)

    async def tmau(ctx):
        ctx.set(unit.landed.payload, {"barrier": A, "bytes": 1})
        for _ in range(20):
            ctx.set(unit.landed.valid, 1)
            assert ctx.get(unit.landed.ready)
            await ctx.tick()
            ctx.set(unit.landed.valid, 0)
            await ctx.tick().repeat(2)

    simulate(dut, processor, reader, tmau)


def test_none_starves():
    polls = [request(BarrierOp.TRY_WAIT, 0, A)] * 20
    log = run(polls, [(B, 1)] * 20)
    # While both wait: landed, request, landed, in five cycles.
    assert log["landed"][:6] == [0, 3, 5, 8, 10, 13]
    assert log["requests"][:3] == [2, 7, 12]


def test_untaken_answer_holds_back_requests_but_not_landed_bytes():
    dut = elaborated(BarrierOnMemory)
    unit = dut.unit

    async def check(ctx):
        ctx.set(unit.requests.valid, 1)
        ctx.set(unit.requests.payload, request(BarrierOp.TRY_WAIT))
        await ctx.tick().repeat(2)
        assert ctx.get(unit.results.valid)
        for _ in range(10):
            assert not ctx.get(unit.requests.ready)
            ctx.set(unit.landed.valid, 1)
            ctx.set(unit.landed.payload, {"barrier": B, "bytes": 1})
            assert ctx.get(unit.landed.ready)
            await ctx.tick()
            ctx.set(unit.landed.valid, 0)
            await ctx.tick()

    simulate(dut, check)


@pytest.mark.parametrize("address", [A | 1, A | 2, A | 4])
def test_misaligned_operations_are_refused_and_reported(address):
    log = run([*SETUP[:1], request(BarrierOp.ARRIVE, 1, address)], [(address, 16)], start=8)
    assert log["answers"][1] == (0, 1)
    assert log["errors"] == [(4, address), (10, address)]
    assert log["stored"][A] == Barrier(1, 1)


def test_refused_landed_bytes_are_reported():
    operations = [request(BarrierOp.INIT, 1), request(BarrierOp.COMPLETE_TX, 1 << 20)]
    log = run(operations, [(A, 1)], start=8)
    assert log["answers"] == [(0, 0), (0, 0)]
    assert log["errors"] == [(10, A)]
    assert log["stored"][A] == Barrier(1, 1, -(1 << 20))


@pytest.mark.parametrize("op", [BarrierOp.TRY_WAIT, BarrierOp.ARRIVE], ids=["question", "refused"])
def test_what_changes_nothing_writes_nothing(op):
    dut = elaborated(BarrierOnMemory)
    unit = dut.unit

    async def check(ctx):
        ctx.set(unit.results.ready, 1)
        ctx.set(unit.requests.payload, request(op, 1))
        ctx.set(unit.requests.valid, 1)
        for _ in range(8):
            assert not (ctx.get(unit.write_back.valid) and ctx.get(unit.write_back.payload.strobe))
            await ctx.tick()

    simulate(dut, check)
