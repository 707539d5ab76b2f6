"""The lane: every reduction of every type against the golden model, on corners and random bytes, in any order."""

import random

import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring

from support.streams import transact
from tilewright.golden.tmau.reduce import is_legal, reduce
from tilewright.hw.reduce.floats import FloatAdder
from tilewright.hw.reduce.integer import decode_operation
from tilewright.hw.reduce.lane import Combiner, ReduceLane
from tilewright.spec import Element, Reduction
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import set_together

SEED = 28
LEGAL = [(op, element) for op in Reduction for element in Element if is_legal(op, element)]

#: Words at the borders between kinds of numbers.
CORNERS = {
    Element.F16: [0, 1, 0x3FF, 0x400, 0x3C00, 0x3C01, 0x7BFF, 0x7C00, 0x7C01, 0x7E00, 0x7FFF],
    Element.BF16: [0, 1, 0x7F, 0x80, 0x3F80, 0x3F81, 0x7F7F, 0x7F80, 0x7F81, 0x7FC0, 0x7FFF],
    Element.F32: [0, 1, 0x7FFFFF, 0x800000, 0x3F800000, 0x33800000, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FFFFFFF],
}


def corners(element):
    """The words of CORNERS of either sign; for integers those around zero and around the ends of the ranges."""
    bits = 8 * element.bytes
    words = CORNERS.get(element, [0, 1, 2, (1 << bits - 1) - 1, (1 << bits - 1) - 2])
    return [*words, *(~word & (1 << bits) - 1 if not element.is_float else word | 1 << bits - 1 for word in words)]


def operands(element, lines, rng):
    """Pairs of 16 bytes: all pairs of corners, then random ones, in which every fourth element equals the other's."""
    pairs = [(a, b) for a in corners(element) for b in corners(element)]
    words = 16 // element.bytes
    while len(pairs) < lines * words or len(pairs) % words:
        a = rng.getrandbits(8 * element.bytes)
        pairs.append((a, a if rng.random() < 0.25 else rng.getrandbits(8 * element.bytes)))
    rng.shuffle(pairs)
    kind = np.dtype(f"<u{element.bytes}")
    return (np.array([pair[side] for pair in pairs], kind).view(np.uint8).reshape(-1, 16) for side in (0, 1))


class DecodedLane(wiring.Component):
    """A lane, and what decodes its operation."""

    def __init__(self, floats):
        self._floats, self.lane = floats, ReduceLane(floats)
        self.latency = self.lane.latency
        members = dict(self.lane.signature.members)
        del members["operation"]
        super().__init__(members)

    def elaborate(self, platform):
        m = Module()
        m.submodules.lane = lane = self.lane
        for name in ("old", "source", "reduction", "element", "enable"):
            m.d.comb += getattr(lane, name).eq(getattr(self, name))
        operation = decode_operation(m, self.reduction, self.element, self._floats, "operation")
        m.d.comb += [lane.operation.eq(operation), self.o.eq(lane.o)]
        return m


def run(work, pause=0.1, floats=True):
    """Sends ``work``, (reduction, element, old, source), one an enabled cycle; returns what comes out."""
    dut = elaborated(DecodedLane, floats)
    rng = random.Random(SEED)
    results = []

    async def testbench(ctx):
        for op, element, old, source in (*work, *[(0, 0, 0, 0)] * dut.latency):
            while rng.random() < pause:
                set_together(ctx, (dut.enable, 0), (dut.old, rng.getrandbits(128)))
                await ctx.tick()
            operation = ((dut.reduction, op), (dut.element, element), (dut.old, old), (dut.source, source))
            set_together(ctx, (dut.enable, 1), *operation)
            await ctx.tick()
            results.append(ctx.get(dut.o))

    simulate(dut, testbench, deadline=2 * len(work) + 100)
    return results[dut.latency - 1 :][: len(work)]


def number(row):
    return int.from_bytes(row.tobytes(), "little")


def check(work, floats=True):
    """``work`` has rows of bytes."""
    results = run([(op, element, number(old), number(source)) for op, element, old, source in work], floats=floats)
    for (op, element, old, source), result in zip(work, results, strict=True):
        expected = number(reduce(op, element, old, source))
        assert result == expected, f"{op.name} {element.name} {number(old):032x} {number(source):032x}: {result:032x}"


def test_every_reduction_of_every_type():
    rng = random.Random(SEED)
    work = [(op, element, *pair) for op, element in LEGAL for pair in zip(*operands(element, 15, rng), strict=True)]
    rng.shuffle(work)
    check(work)


def test_integers_alone():
    """A lane without floats, which takes two cycles."""
    rng = random.Random(SEED)
    legal = [(op, element) for op, element in LEGAL if not element.is_float]
    work = [(op, element, *pair) for op, element in legal for pair in zip(*operands(element, 15, rng), strict=True)]
    rng.shuffle(work)
    check(work, floats=False)
    assert ReduceLane(False).latency == 2


def test_none_gives_the_source():
    assert run([(Reduction.NONE, element, 1, 2 + element) for element in Element]) == [2 + e for e in Element]


BUS_BYTES = 32


@pytest.mark.parametrize("mode", ["none", "both"])
def test_words(mode):
    rng = random.Random(1)
    dut = elaborated(Combiner, BUS_BYTES, True)
    items, expected = [], []
    for _ in range(30):
        old, source = (rng.getrandbits(8 * BUS_BYTES) for _ in range(2))
        strobe, swallow = rng.getrandbits(BUS_BYTES), mode == "both" and rng.random() < 0.3
        word = {"data": source, "strobe": strobe}
        operation = {"kind": 0, "logic": 3, "compare": 1, "start": 1}  # as decoded
        reduction = {"reduction": Reduction.XOR, "element": Element.U32, "operation": operation, "swallow": swallow}
        items.append({"old": old, "word": word} | reduction)
        if not swallow:
            expected.append((old ^ source, strobe))

    async def idle(ctx):
        assert not ctx.get(dut.busy)

    async def busy_with_words(ctx):
        async for _, _, valid, busy in ctx.tick().sample(dut.o.valid, dut.busy):
            assert busy or not valid

    payloads, cycles = transact(dut, {"i": items}, {"o": len(expected)}, mode, seed=2, background=[busy_with_words],
                                settle=FloatAdder.LATENCY, then=idle)  # fmt: skip
    assert [(word.data, word.strobe) for word in payloads["o"]] == expected
    if mode == "none":
        assert cycles["o"] == list(range(FloatAdder.LATENCY, FloatAdder.LATENCY + len(expected)))
