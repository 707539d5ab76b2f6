"""Stream stages: latency, rate, capacity and level. Proofs show the order (tests/formal/lib/test_stream.py)."""

import pytest
from amaranth.lib import data

from support.streams import transact
from tilewright.hw.lib.stream import DeepQueue, Queue, ReadyBuffer, ShallowQueue, SkidBuffer, Slot, wide_queue

#: Stage, latency, cycles an item, capacity.
STAGES = {
    "skid buffer": (lambda shape: SkidBuffer(shape), 1, 1, 2),
    "ready buffer": (lambda shape: ReadyBuffer(shape), 0, 1, 1),
    "slot": (lambda shape: Slot(shape), 1, 2, 1),
    "queue of 2": (lambda shape: Queue(shape, 2), 1, 1, 2),
    "queue of 16": (lambda shape: Queue(shape, 16), 1, 1, 16),
    "queue of 64": (lambda shape: Queue(shape, 64), 1, 1, 64),
    "shallow queue of 8": (lambda shape: ShallowQueue(shape, 8), 1, 1, 8),
    "deep queue of 8": (lambda shape: DeepQueue(shape, 8), 3, 1, 8),
    "direct queue of 8": (lambda shape: DeepQueue(shape, 8, direct=True), 2, 1, 8),
}


def transport(dut, items, mode="none", *, wait=0):
    """Sends ``items`` through ``dut``, whose sink sleeps ``wait`` cycles: payloads, cycles of both handshakes."""
    payloads, cycles = transact(dut, {"i": items}, {"o": len(items)}, mode, starts={"o": wait})
    return payloads["o"], cycles["i"], cycles["o"]


@pytest.mark.parametrize("name", STAGES)
def test_latency_and_rate(name):
    stage, latency, pace, _ = STAGES[name]
    items = list(range(100))
    payloads, sent, received = transport(stage(8), items)
    assert payloads == items
    assert received == list(range(latency, latency + 100 * pace, pace))
    assert pace > 1 or sent == items, "the source never waits"
    _, sent, received = transport(stage(8), items, "idle")
    assert pace > 1 or received[0] == sent[0] + latency


@pytest.mark.parametrize("name", [name for name, (*_, pace, _) in STAGES.items() if pace == 1])
def test_capacity_and_rate_after_a_long_stall(name):
    stage, _, _, capacity = STAGES[name]
    _, sent, received = transport(stage(8), range(100), wait=80)
    assert received == list(range(80, 180))
    assert sent[capacity - 1] == capacity - 1, "it fills at once"
    assert 80 <= sent[capacity] <= 81, "and then is full"


@pytest.mark.parametrize("kind", [DeepQueue, Queue])
def test_level(kind):
    dut = kind(8, 8)
    levels = []

    async def watch(ctx):
        expected = 0
        signals = (dut.i.valid, dut.i.ready, dut.o.valid, dut.o.ready, dut.level)
        async for *_, i_valid, i_ready, o_valid, o_ready, level in ctx.tick().sample(*signals):
            assert level == expected
            levels.append(level)
            expected += (i_valid and i_ready) - (o_valid and o_ready)

    transact(dut, {"i": range(60)}, {"o": 60}, "both", starts={"o": 15}, background=[watch])
    assert set(levels) == set(range(9))


def test_structures_pass():
    shape = data.StructLayout({"a": 3, "b": data.ArrayLayout(4, 2)})
    items = [{"a": n % 8, "b": [n % 16, 15 - n % 16]} for n in range(20)]
    for stage, *_ in STAGES.values():
        payloads, _, _ = transport(stage(shape), items, "both")
        assert payloads == [shape.const(item) for item in items]


@pytest.mark.parametrize("depth", [0, 1, 3, 2048, 4.0])
@pytest.mark.parametrize(("kind", "deepest"), [(Queue, 1024), (DeepQueue, 1024), (ShallowQueue, 32)])
def test_refused_depth(kind, deepest, depth):
    with pytest.raises(ValueError, match=rf"^depth must be a power of two from 2 to {deepest}, not {depth}$"):
        kind(8, depth)


def test_wide_queue_by_depth():
    assert [type(wide_queue(8, depth)) for depth in (2, 16, 32)] == [ShallowQueue, ShallowQueue, DeepQueue]
