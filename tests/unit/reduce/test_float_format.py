"""Floating-point formats: the parts of a number of each, at the widths of the largest."""

from amaranth.hdl import Elaboratable, Module, Signal

from tilewright.hw.reduce.float_format import BF16, F16, F32, unpack
from tilewright.sim.pysim.simulate import elaborated, simulate


class Unpacked(Elaboratable):
    """``unpack`` between ports."""

    def __init__(self):
        self.value, self.format = Signal(32), Signal(2)

    def elaborate(self, platform):
        m = Module()
        self.parts = unpack(m, "part", (F32, F16, BF16), self.format, self.value, 8, 23)
        return m


def test_parts_of_numbers():
    dut = elaborated(Unpacked)
    table = [
        # format, value: sign, size, exponent, significand, nan, infinite
        (0, 0xBFC00000, (1, 0x3FC00000, 127, 0xC00000, 0, 0)),
        (0, 0x007FFFFF, (0, 0x007FFFFF, 1, 0, 0, 0)),  # flushed
        (0, 0x7F800000, (0, 0x7F800000, 255, 0x800000, 0, 1)),
        (1, 0xABCD3E00, (0, 0x3E00, 15, 0xC00000, 0, 0)),
        (1, 0x8001, (1, 1, 1, 1 << 13, 0, 0)),
        (1, 0x7C01, (0, 0x7C01, 31, 0x802000, 1, 0)),
        (2, 0x0001, (0, 1, 1, 1 << 16, 0, 0)),
        (2, 0xFF80, (1, 0x7F80, 255, 0x800000, 0, 1)),
    ]

    async def compare(ctx):
        for fmt, value, expected in table:
            ctx.set(dut.format, fmt)
            ctx.set(dut.value, value)
            parts = dut.parts
            signals = (parts.sign, parts.size, parts.exponent, parts.significand, parts.nan, parts.infinite)
            assert tuple(ctx.get(signal) for signal in signals) == expected, f"{fmt} {value:#x}"

    simulate(dut, compare)


def test_width():
    assert [fmt.width for fmt in (F16, BF16, F32)] == [16, 16, 32]
