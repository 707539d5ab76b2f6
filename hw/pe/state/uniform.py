"""The uniform registers: each names a segment."""

from amaranth import Array, Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["UniformRegisters"]


class UniformRegisters(wiring.Component):
    """Registers, one written and one read at a time. None is set after reset.

    Members
    -------
    write : In(1)
        Strobe: register ``number`` names segment ``value`` from the next cycle on.
    value : In(32)
    number : In(range(params.uniform_regs))
        Of a register that exists.
    is_set : Out(1)
        It was written. Combinational, as the others.
    exists : Out(1)
        There is a segment of that number.
    segment : Out(params.segment_width)
        The segment, if it exists.
    """

    def __init__(self, params):
        self.params = params
        super().__init__(
            {
                "write": In(1),
                "value": In(32),
                "number": In(range(params.uniform_regs)),
                "is_set": Out(1),
                "exists": Out(1),
                "segment": Out(params.segment_width),
            }
        )

    def elaborate(self, platform):
        m = Module()
        layout = data.StructLayout({"is_set": 1, "exists": 1, "segment": self.params.segment_width})
        registers = [Signal(layout, name=f"ur{number}") for number in range(self.params.uniform_regs)]
        named = Signal(layout)
        m.d.comb += [
            named.eq(Array(registers)[self.number]),
            self.is_set.eq(named.is_set),
            self.exists.eq(named.exists),
            self.segment.eq(named.segment),
        ]
        for number, register in enumerate(registers):
            with m.If(self.write & (self.number == number)):
                m.d.sync += [
                    register.is_set.eq(1),
                    register.exists.eq(self.value < self.params.segments),
                    register.segment.eq(self.value),
                ]
        return m
