"""Rules that several blocks share, one by one."""

import random

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec import Element, Reduction
from tilewright.hw.tmau.layouts import WindowsLayout
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.hw.tmau.setup.rules import no_reduction, outside_global, outside_shared, reaches_out
from tilewright.sim.pysim.simulate import elaborated, simulate

SEED = 20261121
PARAMS = TMAU_PRESETS["unit"]
# docs/tmau.md, "Stores and reductions", line by line.
TABLE = {
    "ADD": "U32 S32 U64 F16 BF16 F32",
    "MIN": "U32 S32 U64 S64 F16 BF16",
    "MAX": "U32 S32 U64 S64 F16 BF16",
    "INC": "U32",
    "DEC": "U32",
    "AND": "U32 S32 U64 S64",
    "OR": "U32 S32 U64 S64",
    "XOR": "U32 S32 U64 S64",
}


class Rules(wiring.Component):
    """All rules side by side."""

    reduction: In(4)
    element: In(4)
    windows: In(WindowsLayout(PARAMS))
    first: In(64)
    last: In(65)
    missing: Out(1)
    outside_global: Out(1)
    outside_shared: Out(1)
    reaches_out: Out(1)

    def elaborate(self, platform):
        m = Module()
        first, last = Signal(PARAMS.smem.addr_width), Signal(PARAMS.smem.addr_width)
        m.d.comb += [
            first.eq(self.first),
            last.eq(self.last),
            self.missing.eq(no_reduction(self.reduction, self.element)),
            self.outside_global.eq(outside_global(self.windows, self.first, self.last)),
            self.outside_shared.eq(outside_shared(self.windows, first, last)),
            self.reaches_out.eq(reaches_out(self.windows, first, last + 1)),
        ]
        return m


def test_reductions():
    dut = elaborated(Rules)

    async def run(ctx):
        for reduction in range(16):
            name = Reduction(reduction).name if reduction <= max(Reduction) else None
            elements = {Element[element] for element in TABLE.get(name, "").split()}
            for element in range(16):
                ctx.set(dut.reduction, reduction)
                ctx.set(dut.element, element)
                assert ctx.get(dut.missing) == (element not in elements)

    simulate(dut, run)


def test_windows():
    dut = elaborated(Rules)
    rng = random.Random(SEED)
    top = 1 << PARAMS.addr_width

    async def run(ctx):
        for _ in range(3000):
            pages = sorted(rng.choice([0, rng.randrange(top >> 12), (top >> 12) - 1]) for _ in range(2))
            lines = sorted(rng.choice([0, rng.randrange(32), 31]) for _ in range(2))
            confine = rng.randrange(4)
            ctx.set(
                dut.windows,
                {
                    "confine_global": confine & 1,
                    "global_first": pages[0],
                    "global_last": pages[1],
                    "confine_shared": confine >> 1,
                    "shared_first": lines[0],
                    "shared_last": lines[1],
                },
            )
            near = rng.choice([pages[0] << 12, (pages[1] + 1 << 12) - 1, top - 1, (1 << 64) - 1])
            first = max(0, min(near + rng.randint(-300, 300), (1 << 64) - 1))
            last = first + rng.choice([0, rng.randrange(600)])
            ctx.set(dut.first, first)
            ctx.set(dut.last, last)
            inside = pages[0] << 12 <= first and last < min(pages[1] + 1 << 12, top)
            assert ctx.get(dut.outside_global) == (confine & 1 and not inside)
            first = rng.randrange(4096)
            last = min(4095, first + rng.randrange(600))
            ctx.set(dut.first, first)
            ctx.set(dut.last, last)
            inside = lines[0] * 128 <= first and last < (lines[1] + 1) * 128
            assert ctx.get(dut.outside_shared) == (confine >> 1 and not inside)
            assert ctx.get(dut.reaches_out) == (confine >> 1 and not inside)

    print(f"seed {SEED}")
    simulate(dut, run)
