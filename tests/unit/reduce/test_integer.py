"""Integer reducer: every reduction that needs no float adder, on corners and random words, against the golden model."""

import random

import numpy as np
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from tilewright.golden.tmau.reduce import is_legal, reduce
from tilewright.hw.reduce.integer import IntegerReducer, decode_operation
from tilewright.spec import Element, Reduction
from tilewright.verify.pysim.simulate import simulate
from tilewright.verify.pysim.streams import set_together

SEED = 30
WORK = [
    (op, element)
    for op in Reduction
    for element in Element
    if is_legal(op, element) and not (op == Reduction.ADD and element.is_float)
]


def corners(element):
    """Around zero and the ends of the ranges; for floats also infinities and the NaNs beside them."""
    bits = 8 * element.bytes
    words = [0, 1, (1 << bits - 1) - 1, (1 << bits - 1) - 2]
    words += {Element.F16: [0x7C00, 0x7C01, 0x0400], Element.BF16: [0x7F80, 0x7F81, 0x0080]}.get(element, [])
    return [*words, *(word ^ 1 << bits - 1 for word in words), (1 << bits) - 1]


def lines(element, rng, count=150):
    """Pairs of eight bytes: all pairs of corners, then random words, a quarter of them equal in the upper half."""
    pairs = [(a, b) for a in corners(element) for b in corners(element)]
    words = 8 // element.bytes
    while len(pairs) < count * words or len(pairs) % words:
        a, b = (rng.getrandbits(8 * element.bytes) for _ in range(2))
        pairs.append((a, a >> 4 * element.bytes << 4 * element.bytes | b >> 4 * element.bytes if b % 4 == 0 else b))
    rng.shuffle(pairs)
    for first in range(0, len(pairs), words):
        group = pairs[first : first + words]
        yield [np.array([pair[side] for pair in group], f"<u{element.bytes}").view(np.uint8) for side in (0, 1)]


def number(row):
    return int.from_bytes(row.tobytes(), "little")


class DecodedReducer(wiring.Component):
    """An IntegerReducer, and what decodes its operation."""

    LATENCY = IntegerReducer.LATENCY

    def __init__(self):
        self.reducer = IntegerReducer()
        numbers = {"reduction": In(4), "element": In(4)}
        super().__init__({"old": In(64), "source": In(64), **numbers, "enable": In(1), "o": Out(64)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.reducer = reducer = self.reducer
        m.d.comb += [
            *(getattr(reducer, name).eq(getattr(self, name)) for name in ("old", "source", "enable")),
            reducer.operation.eq(decode_operation(m, self.reduction, self.element, True, "operation")),
            self.o.eq(reducer.o),
        ]
        return m


def test_every_reduction_of_every_type():
    dut, rng = DecodedReducer(), random.Random(SEED)
    work = [(op, element, *pair) for op, element in WORK for pair in lines(element, rng)]
    rng.shuffle(work)
    expected = [number(reduce(*each)) for each in work]

    async def testbench(ctx):
        ctx.set(dut.enable, 1)
        for step in range(len(work) + dut.LATENCY):
            op, element, old, source = work[min(step, len(work) - 1)]
            words = ((dut.old, number(old)), (dut.source, number(source)))
            set_together(ctx, (dut.reduction, op), (dut.element, element), *words)
            await ctx.tick()
            done = step - dut.LATENCY + 1
            if 0 <= done < len(work):
                op, element, old, source = work[done]
                assert ctx.get(dut.o) == expected[done], f"{op.name} {element.name} {old} {source}"

    simulate(dut, testbench, deadline=len(work) + 100)
