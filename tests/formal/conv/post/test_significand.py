"""A significand is its number to 24 significant bits, nearest even, whatever the number is."""

import pytest
from amaranth.hdl import Assert, Const, Elaboratable, Module, Signal

from tilewright.hw.conv.post.significand import PLACES, Significand
from tilewright.hw.lib.delay import delay
from tilewright.sim.formal import prove


class SignificandSpec(Elaboratable):
    """One case for each length of the number, by shifts and remainders."""

    def __init__(self, width):
        self.dut = Significand(width)
        self._width = width

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        number = delay(m, dut.i, dut.LATENCY, name="number")
        known = delay(m, Const(1), dut.LATENCY, name="known")
        with m.If(known & (number == 0)):
            m.d.comb += Assert(dut.o == 0)
        for length in range(1, self._width + 1):
            cut = max(length - 24, 0)
            kept, rest = number >> cut, number[:cut] if cut else Const(0)
            up = (rest > (1 << cut >> 1)) | ((rest == (1 << cut >> 1)) & kept[0]) if cut else Const(0)
            wanted, places = Signal(25, name=f"wanted{length}"), Signal(PLACES, name=f"places{length}")
            m.d.comb += [wanted.eq((kept + up) << max(24 - length, 0)), places.eq(length - 24)]
            with m.If(known & number[length - 1] & ~number[length:].any()):
                m.d.comb += Assert(dut.o[-1])
                with m.If(wanted[24]):
                    m.d.comb += Assert((dut.o == wanted >> 1) & (dut.places == places + 1))
                with m.Else():
                    m.d.comb += Assert((dut.o == wanted) & (dut.places == places))
        return m


def test_of_requantisation():
    spec = SignificandSpec(32)
    prove(spec, [spec.dut.i], name="significand-32", depth=4)


@pytest.mark.long
def test_of_fused_sums():
    spec = SignificandSpec(36)
    prove(spec, [spec.dut.i], name="significand-36", depth=4)
