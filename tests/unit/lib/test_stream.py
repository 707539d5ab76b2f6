"""Stream stages: order, full rate and latency in every stall mode, and the queue's level."""

import pytest
from amaranth.lib import data

from tilewright.hw.lib.stream import (
    DeepQueue,
    Queue,
    ReadyBuffer,
    ShallowQueue,
    SkidBuffer,
    Slot,
    SlowQueue,
    TwinBuffer,
    wide_queue,
)
from tilewright.verify.pysim.simulate import simulate
from tilewright.verify.pysim.streams import STALL_MODES, receive, send, watch_stream

STAGES = {
    "skid": lambda shape: SkidBuffer(shape),
    "queue of 2": lambda shape: Queue(shape, 2),
    "queue of 16": lambda shape: Queue(shape, 16),
    "queue of 64": lambda shape: Queue(shape, 64),
    "shallow queue of 8": lambda shape: ShallowQueue(shape, 8),
}


def transport(dut, items, mode, *, wait=0):
    """Sends ``items`` through ``dut``; what comes out, and the cycles of both ends. The sink sleeps ``wait`` cycles."""
    result = {}

    async def source(ctx):
        result["sent"] = await send(ctx, dut.i, items, idle=STALL_MODES[mode]["idle"], seed=3)

    async def sink(ctx):
        for _ in range(wait):
            await ctx.tick()
        stall = STALL_MODES[mode]["stall"]
        payloads, cycles = await receive(ctx, dut.o, len(items), stall=stall, seed=3)
        result["payloads"] = payloads
        result["taken"] = [wait + cycle for cycle in cycles]

    simulate(dut, source, sink, background=[watch_stream(dut.o)])
    return result["payloads"], result["sent"], result["taken"]


@pytest.mark.parametrize("mode", STALL_MODES)
@pytest.mark.parametrize("stage", STAGES)
def test_order(stage, mode):
    items = [(37 * n + 11) % 256 for n in range(150)]
    payloads, _, _ = transport(STAGES[stage](8), items, mode)
    assert payloads == items


@pytest.mark.parametrize("stage", STAGES)
def test_latency_one_and_full_rate(stage):
    _, sent, taken = transport(STAGES[stage](8), range(100), "none")
    assert sent == list(range(100))
    assert taken == list(range(1, 101))


@pytest.mark.parametrize("stage", STAGES)
def test_lone_items_take_one_cycle(stage):
    _, sent, taken = transport(STAGES[stage](8), range(100), "idle")
    assert taken == [cycle + 1 for cycle in sent]


@pytest.mark.parametrize(
    ("stage", "capacity"),
    [("skid", 2), ("queue of 2", 2), ("queue of 16", 16), ("shallow queue of 8", 8)],
)
def test_full_rate_after_a_long_stall(stage, capacity):
    _, sent, taken = transport(STAGES[stage](8), range(100), "none", wait=40)
    assert taken == list(range(40, 140))
    assert sent[capacity - 1] == capacity - 1, "it fills at once"
    assert sent[capacity] >= 40, "and then holds no more"
    assert sent[-1] <= 138, "the source is not the one that waits longer"


@pytest.mark.parametrize("mode", STALL_MODES)
def test_ready_buffer_keeps_the_order(mode):
    items = [(37 * n + 11) % 256 for n in range(150)]
    payloads, _, _ = transport(ReadyBuffer(8), items, mode)
    assert payloads == items


def test_ready_buffer_takes_no_time_and_holds_one_item():
    _, sent, taken = transport(ReadyBuffer(8), range(100), "none")
    assert sent == taken == list(range(100))
    _, sent, taken = transport(ReadyBuffer(8), range(100), "none", wait=40)
    assert taken == list(range(40, 140))
    assert sent == [0, *range(41, 140)]


@pytest.mark.parametrize("mode", STALL_MODES)
def test_slow_queue_keeps_the_order(mode):
    items = [(37 * n + 11) % 256 for n in range(150)]
    payloads, _, _ = transport(SlowQueue(8, 4), items, mode)
    assert payloads == items


def test_slow_queue_takes_two_cycles_and_holds_its_depth():
    _, sent, taken = transport(SlowQueue(8, 4), range(100), "none")
    assert sent[:4] == list(range(4))
    assert taken == list(range(2, 202, 2))
    _, sent, taken = transport(SlowQueue(8, 4), range(100), "none", wait=40)
    assert sent[:4] == list(range(4))
    assert sent[4] >= 40, "and then holds no more"


@pytest.mark.parametrize("mode", STALL_MODES)
@pytest.mark.parametrize("direct", [False, True])
def test_deep_queue_keeps_the_order(direct, mode):
    items = [(37 * n + 11) % 256 for n in range(150)]
    payloads, _, _ = transport(DeepQueue(8, 4, direct=direct), items, mode)
    assert payloads == items


@pytest.mark.parametrize(("direct", "latency"), [(False, 3), (True, 2)])
def test_deep_queue_takes_its_time_and_holds_its_depth(direct, latency):
    _, sent, taken = transport(DeepQueue(8, 64, direct=direct), range(100), "none")
    assert sent == list(range(100))
    assert taken == list(range(latency, latency + 100))
    _, sent, taken = transport(DeepQueue(8, 4, direct=direct), range(100), "none", wait=40)
    assert taken == list(range(40, 140))
    assert sent[:4] == list(range(4))
    assert sent[4] >= 40, "and then holds no more"


@pytest.mark.parametrize("kind", [DeepQueue, Queue, SlowQueue])
def test_queue_level_counts_what_it_holds(kind):
    dut = kind(8, 8)
    levels = []

    async def source(ctx):
        await send(ctx, dut.i, range(60), idle=0.3, seed=5)

    async def sink(ctx):
        for _ in range(15):
            await ctx.tick()
        await receive(ctx, dut.o, 60, stall=0.5, seed=5)

    async def watch(ctx):
        expected = 0
        signals = (dut.i.valid, dut.i.ready, dut.o.valid, dut.o.ready, dut.level)
        async for *_, i_valid, i_ready, o_valid, o_ready, level in ctx.tick().sample(*signals):
            assert level == expected
            levels.append(level)
            expected += (i_valid and i_ready) - (o_valid and o_ready)

    simulate(dut, source, sink, background=[watch])
    assert set(levels) == set(range(9))


def test_structures_pass():
    shape = data.StructLayout({"a": 3, "b": data.ArrayLayout(4, 2)})
    items = [{"a": n % 8, "b": [n % 16, 15 - n % 16]} for n in range(20)]
    for stage in STAGES.values():
        payloads, _, _ = transport(stage(shape), items, "both")
        assert payloads == [shape.const(item) for item in items]


@pytest.mark.parametrize("depth", [0, 1, 3, 2048])
@pytest.mark.parametrize("kind", [Queue, DeepQueue])
def test_queue_refuses_depth(kind, depth):
    with pytest.raises(ValueError, match=rf"^depth must be a power of two from 2 to 1024, not {depth}$"):
        kind(8, depth)


def test_a_wide_queue_is_one_that_fits():
    assert [type(wide_queue(8, depth)) for depth in (2, 16, 32)] == [ShallowQueue, ShallowQueue, DeepQueue]


def test_queue_refuses_what_is_no_depth():
    with pytest.raises(TypeError, match=r"^depth must be an int, not 4\.0$"):
        Queue(8, 4.0)


@pytest.mark.parametrize("depth", [0, 1, 3, 64, 4.0])
def test_shallow_queue_refuses_depth(depth):
    with pytest.raises(ValueError, match=rf"^depth must be a power of two from 2 to 32, not {depth}$"):
        ShallowQueue(8, depth)
    with pytest.raises(ValueError, match=rf"^depth must be a power of two from 2 to 32, not {depth}$"):
        SlowQueue(8, depth)


@pytest.mark.parametrize("mode", STALL_MODES)
def test_an_item_every_other_cycle(mode):
    items = [(37 * n + 11) % 256 for n in range(100)]
    dut = Slot(8)

    async def source(ctx):
        await send(ctx, dut.i, items, idle=STALL_MODES[mode]["idle"], seed=3)

    async def sink(ctx):
        payloads, taken = await receive(ctx, dut.o, len(items), stall=STALL_MODES[mode]["stall"], seed=3)
        assert payloads == items
        if mode == "none":
            assert taken == list(range(1, 201, 2))

    simulate(dut, source, sink, background=[watch_stream(dut.o)])


def twin_transport(items, mode, *, wait=0):
    """Sends ``items``; what comes out, and the cycles of both ends. The sink sleeps ``wait`` cycles."""
    dut, result = TwinBuffer(8), {}

    async def source(ctx):
        result["sent"] = await send(ctx, dut.i, items, idle=STALL_MODES[mode]["idle"], seed=3)

    async def sink(ctx):
        for _ in range(wait):
            await ctx.tick()
        payloads, cycles = await receive(ctx, dut.o, len(items), stall=STALL_MODES[mode]["stall"], seed=3)
        result["came"] = payloads, [wait + cycle for cycle in cycles]

    simulate(dut, source, sink, background=[watch_stream(dut.o)])
    return result["sent"], *result["came"]


@pytest.mark.parametrize("mode", STALL_MODES)
def test_twin_order(mode):
    items = [(37 * n + 11) % 256 for n in range(150)]
    assert twin_transport(items, mode)[1] == items


def test_twin_latency_one_and_full_rate():
    sent, _, taken = twin_transport(range(100), "none")
    assert sent == list(range(100))
    assert taken == list(range(1, 101))


def test_two_items_fit_and_the_rate_is_full_behind_a_long_stall():
    sent, _, taken = twin_transport(range(100), "none", wait=40)
    assert taken == list(range(40, 140))
    assert sent[1] == 1 and sent[2] >= 40
