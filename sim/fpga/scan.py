"""A harness with three pins for a component with more ports than a package has pins."""

from amaranth.hdl import Cat, ClockDomain, ClockSignal, Const, Module, ResetSignal, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..hdl.verilog import conventional_ports

__all__ = ["DUT", "Scan"]

#: Name of the component inside the harness.
DUT = "dut"
#: Outputs that go into one register of the second chain: with its neighbour they are the inputs of one table.
_FOLDED = 3


class Scan(wiring.Component):
    """Registers around a component, so that the paths in it count and those to the pins do not.

    A shift register drives the inputs and the reset. Every output goes to a register of its own, and the exclusive or
    of these into another shift register, so that nothing is constant and nothing is unused.

    Parameters
    ----------
    component : wiring.Component
        One clock domain, ``sync``.

    Members
    -------
    clock : In(1)
        Of the component and of all registers here.
    scan_in : In(1)
        First bit of the inputs.
    scan_out : Out(1)
        Last bit of the folded outputs.
    """

    clock: In(1)
    scan_in: In(1)
    scan_out: Out(1)

    def __init__(self, component):
        super().__init__()
        self._component = component

    def elaborate(self, platform):
        m = Module()
        m.domains.sync = ClockDomain()
        m.domains.scan = ClockDomain(reset_less=True)
        m.submodules[DUT] = self._component
        values = [(value, direction.name) for value, direction in conventional_ports(self._component).values()
                  if not isinstance(value, Const)]  # fmt: skip
        inputs = Cat(value for value, direction in values if direction == "Input")
        outputs = Cat(value for value, direction in values if direction == "Output")
        # The last bit resets.
        chain = Signal(len(inputs) + 1)
        held = Signal(len(outputs))
        folded = Signal(-(-len(outputs) // _FOLDED))
        m.d.comb += [
            ClockSignal("sync").eq(self.clock),
            ClockSignal("scan").eq(self.clock),
            ResetSignal("sync").eq(chain[-1]),
            inputs.eq(chain),
            self.scan_out.eq(folded[-1]),
        ]
        # A block of their own, so that their cells have its name.
        m.submodules.registers = registers = Module()
        registers.d.scan += [chain.eq(Cat(self.scan_in, chain)), held.eq(outputs)]
        for i in range(len(folded)):
            before = folded[i - 1] if i else Const(0, 1)
            registers.d.scan += folded[i].eq(before ^ held[i * _FOLDED : (i + 1) * _FOLDED].xor())
        return m
