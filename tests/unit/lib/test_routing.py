"""Arbiters: turns, steadiness and merged streams."""

import random

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.hw.lib.routing import Fork, RoundRobinArbiter, StreamArbiter, StreamGate, StreamShare, pick
from tilewright.hw.smem.layouts import BarrierRequestLayout, BarrierResultLayout
from tilewright.hw.smem.params import SmemParams
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, receive, send, watch_stream


def grants(n, steps):
    """Grants for ``steps`` of (requests, advance)."""
    dut = RoundRobinArbiter(n)
    seen = []

    async def testbench(ctx):
        for requests, advance in steps:
            ctx.set(dut.requests, requests)
            ctx.set(dut.advance, advance)
            seen.append(ctx.get(dut.grant))
            await ctx.tick()

    simulate(dut, testbench)
    return seen


def test_everybody_in_turn():
    assert grants(3, 7 * [(0b111, 1)]) == [1, 2, 4, 1, 2, 4, 1]


def test_only_who_asks():
    assert grants(4, [(0b1010, 1), (0b1010, 1), (0b1010, 1), (0, 1), (0b0001, 1)]) == [2, 8, 2, 0, 1]


def test_a_grant_stays_until_it_is_served():
    """Request 2 is granted and waits; request 0, which would come first, does not push in."""
    assert grants(3, [(0b100, 0), (0b101, 0), (0b111, 1), (0b111, 1)]) == [4, 4, 4, 1]


def test_a_request_that_ends_loses_its_turn():
    assert grants(3, [(0b010, 0), (0b101, 0), (0b111, 1), (0b111, 1)]) == [2, 4, 4, 1]


def test_one_request():
    assert grants(1, [(1, 1), (0, 1), (1, 0), (1, 1)]) == [1, 0, 1, 1]


def merge(n, count, mode, *, shape=16):
    """Merges ``n`` streams of ``count`` items each, item k of stream s being 256 s + k."""
    dut = StreamArbiter(shape, n)
    stalls = STALL_MODES[mode]
    result = {"winners": []}

    def source(index):
        async def testbench(ctx):
            await send(ctx, dut.i[index], range(256 * index, 256 * index + count), idle=stalls["idle"], seed=index)

        return testbench

    async def sink(ctx):
        result["items"], result["cycles"] = await receive(ctx, dut.o, n * count, stall=stalls["stall"], seed=9)

    async def winners(ctx):
        async for *_, valid, ready, winner in ctx.tick().sample(dut.o.valid, dut.o.ready, dut.winner):
            assert bool(winner) == bool(valid)
            if valid and ready:
                result["winners"].append(winner)

    simulate(dut, *map(source, range(n)), sink, background=[watch_stream(dut.o), winners])
    return result


@pytest.mark.parametrize("mode", STALL_MODES)
@pytest.mark.parametrize("n", [1, 2, 3, 8])
def test_merge(n, mode):
    result = merge(n, 30, mode)
    for index in range(n):
        mine = [item for item in result["items"] if item >> 8 == index]
        assert mine == list(range(256 * index, 256 * index + 30)), "in order, nothing lost"
    assert result["winners"] == [1 << (item >> 8) for item in result["items"]]
    if mode == "none":
        assert result["cycles"] == list(range(30 * n)), "no latency, one item a cycle"
        assert result["winners"] == [1 << index for index in range(n)] * 30


def test_structures_pass():
    shape = data.StructLayout({"a": 3, "b": 5})
    dut = StreamArbiter(shape, 2)

    async def source(ctx):
        await send(ctx, dut.i[1], [{"a": 5, "b": 17}])

    async def sink(ctx):
        items, _ = await receive(ctx, dut.o, 1)
        assert items == [shape.const({"a": 5, "b": 17})]

    simulate(dut, source, sink)


def test_refused_n():
    with pytest.raises(ValueError, match=r"^n must be an int of at least 1, not 0$"):
        RoundRobinArbiter(0)
    with pytest.raises(ValueError, match=r"^n must be an int of at least 1, not 2\.0$"):
        StreamArbiter(8, 2.0)


ITEMS = [*range(100)]


@pytest.mark.parametrize("mode", STALL_MODES)
@pytest.mark.parametrize("n", [2, 3])
def test_every_output_gets_every_item(n, mode):
    dut = Fork(8, n)
    taken = {}

    async def source(ctx):
        await send(ctx, dut.i, ITEMS, idle=STALL_MODES[mode]["idle"])

    def sink(index):
        async def take(ctx):
            taken[index] = await receive(ctx, dut.o[index], len(ITEMS), stall=STALL_MODES[mode]["stall"], seed=index)

        return take

    simulate(dut, source, *map(sink, range(n)), background=[watch_stream(port) for port in dut.o])
    assert all(items == ITEMS for items, _ in taken.values())
    if mode == "none":
        assert all(cycles == ITEMS for _, cycles in taken.values())


@pytest.mark.parametrize("n", [1, 2.0])
def test_refused_parameters(n):
    with pytest.raises(ValueError, match="n must be an int of at least 2"):
        Fork(8, n)


@pytest.mark.parametrize("mode", STALL_MODES)
def test_items_pass_in_order_while_it_is_open(mode):
    dut, items, closed = elaborated(StreamGate, 8), list(range(200)), []
    rng = random.Random(mode)

    async def source(ctx):
        sent.extend(await send(ctx, dut.i, items, idle=STALL_MODES[mode]["idle"], seed=1))

    async def sink(ctx):
        came, cycles = await receive(ctx, dut.o, len(items), stall=STALL_MODES[mode]["stall"], seed=2)
        assert came == items
        times.extend(cycles)

    async def close(ctx):
        while True:
            ctx.set(dut.closed, rng.random() < 0.3)
            closed.append(ctx.get(dut.closed))
            await ctx.tick()

    sent, times = [], []
    simulate(dut, sink, source, background=[close, watch_stream(dut.o)])
    assert sent == times and any(closed) and (mode != "none" or not any(closed[cycle] for cycle in times))


def test_what_was_offered_passes_and_nothing_else():
    dut = elaborated(StreamGate, 8)

    async def testbench(ctx):
        ctx.set(dut.i.valid, 1)
        await ctx.tick()
        ctx.set(dut.closed, 1)
        await ctx.tick().repeat(3)
        assert ctx.get(dut.o.valid) and not ctx.get(dut.i.ready)
        ctx.set(dut.o.ready, 1)
        await ctx.tick()
        for _ in range(3):
            assert not ctx.get(dut.o.valid) and not ctx.get(dut.i.ready)
            await ctx.tick()
        ctx.set(dut.closed, 0)
        assert ctx.get(dut.o.valid) and ctx.get(dut.i.ready)

    simulate(dut, testbench)


class Picker(wiring.Component):
    """Three streams become one."""

    i: In(stream.Signature(8)).array(3)
    o: Out(stream.Signature(8))

    def elaborate(self, platform):
        m = Module()
        payload, valid = Signal(8), Signal()
        pick(m, self.i, payload, valid, self.o.ready)
        m.d.comb += [self.o.payload.eq(payload), self.o.valid.eq(valid)]
        return m


def test_items_in_turn():
    dut = Picker()

    async def feed(ctx):
        for number in range(30):
            await send(ctx, dut.i[number * 7 % 3], [number], idle=0.3, seed=number)

    async def take(ctx):
        items, _ = await receive(ctx, dut.o, 30, stall=0.4, seed=1)
        assert items == list(range(30))

    simulate(dut, feed, take, background=[watch_stream(dut.o)])


SEED = 7
COUNT = 40


def two_processors():
    return StreamShare(BarrierRequestLayout(SmemParams(1024)), BarrierResultLayout(), 2)


@pytest.mark.parametrize("mode", STALL_MODES)
def test_each_gets_its_own_answers_in_order(mode):
    """The answer to an operation is made from its address here, so that a swapped one shows."""
    dut = elaborated(two_processors)
    rng = random.Random(SEED)
    asked = [
        [{"op": 4, "address": rng.randrange(0, 512) * 2 + owner, "value": 0} for _ in range(COUNT)] for owner in (0, 1)
    ]
    stalls, got, merged = STALL_MODES[mode], {}, []

    async def memory(ctx):
        for _ in range(2 * COUNT):
            (request,), _ = await receive(ctx, dut.merged, 1, stall=stalls["stall"], seed=len(merged))
            merged.append(request)
            await send(ctx, dut.answers, [answer_to(request["address"])], idle=stalls["idle"], seed=len(merged))

    def processor(owner):
        async def ask(ctx):
            await send(ctx, dut.requests[owner], asked[owner], idle=stalls["idle"], seed=SEED + owner)

        async def listen(ctx):
            got[owner], _ = await receive(ctx, dut.results[owner], COUNT, stall=stalls["stall"], seed=SEED - owner)

        return ask, listen

    watched = [dut.merged, *dut.results]
    simulate(dut, memory, *processor(0), *processor(1), background=[watch_stream(port) for port in watched])
    for owner in (0, 1):
        assert [int(answer["done"]) for answer in got[owner]] == [answer_to(a["address"])["done"] for a in asked[owner]]
        assert [r["address"] for r in merged if r["address"] % 2 == owner] == [a["address"] for a in asked[owner]]


def answer_to(address):
    return {"done": address >> 1 & 1, "error": 0}
