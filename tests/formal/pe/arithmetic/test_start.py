"""F12: no operation starts while what it reads is to be written, and no result meets that of a multiply in a bank."""

import pytest
from amaranth.hdl import Assert, Assume, Cat, Cover, Signal

from support.formal import Spec, proved_and_covered
from tilewright.hw.pe.arithmetic.start import ArithmeticStart
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.verify.formal import prove

PARAMS = PE_PRESETS["unit"].replace(threads=4, regs=16)


class StartSpec(Spec):
    given = "i"

    def __init__(self, units, latency):
        self.latency, self.divides = latency, "div" in units
        super().__init__(ArithmeticStart(PARAMS.replace(units=units), latency))

    def specify(self, m, dut):
        operation, flight, division = dut.second, list(dut.in_flight)[:-1], dut.in_flight[-1]

        # As Router makes them: a division writes a register, and there is none without a unit for it.
        def made(operation):
            return ~operation.iterates | (~operation.to_predicate if self.divides else 0)

        buffer = dut.buffer
        m.d.comb += [
            Assume(made(dut.i.payload)),
            Assert(~buffer.o.valid | made(buffer.o.payload)),
            Assert(~buffer.skidded | made(buffer.skid)),
            Assert(~dut.second_valid | made(operation)),
        ]

        # The claim.
        for item in flight:
            m.d.comb += Assert(~(dut.starts & dut.depends(operation, item)))
        overwrites = division.valid & ~operation.to_predicate & (operation.target == division.target)
        m.d.comb += Assert(~(dut.starts & (dut.depends(operation, division) | overwrites)))
        registers = dut.registers
        ahead = [Signal(2, name=f"ahead{n}") for n in range(self.latency)]
        m.d.sync += [later.eq(earlier) for earlier, later in zip([dut.writes_ahead, *ahead], ahead, strict=False)]
        bank = registers.results_register[0]
        m.d.comb += Assert(~(registers.results_valid & ahead[-1].bit_select(bank, 1)))
        # Ports are used only when nobody else does.
        m.d.comb += [
            Assert((registers.left_enable & registers.left_busy) == 0),
            Assert((registers.right_enable & registers.right_busy) == 0),
        ]

        # Invariants.
        with m.If(dut.second_valid):
            for item, on in zip(flight, dut.on, strict=True):
                m.d.comb += Assert(~dut.depends(operation, item) | on)
            m.d.comb += Assert(~(dut.depends(operation, division) | overwrites) | dut.divides)
            m.d.comb += Assert(dut.busy == (dut.on.any() | dut.divides))
        m.d.comb += Assert(~division.to_predicate)
        for item, banks in zip(flight, ahead, strict=True):
            m.d.comb += Assert(~(item.valid & ~item.to_predicate & banks.bit_select(item.target[0], 1)))
        m.d.comb += [
            Cover(dut.starts & Cat(item.valid for item in flight).all()),
            Cover(dut.starts & (operation.reads == 0b111) & flight[0].valid),
        ]


@pytest.mark.parametrize("units", [("alu",), ("alu", "div")], ids=["alu", "div"])
@proved_and_covered(1, 12)
def test_start(units, mode, depth):
    prove(StartSpec(units, 4), name=f"pe-start-{units[-1]}-{mode}", mode=mode, depth=depth, proves="F12")
