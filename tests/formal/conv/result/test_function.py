"""The LUT of a function: any result that enters leaves in order as any byte of the LUT that it selects."""

from amaranth.hdl import Assert, Assume, Cover, Signal

from support.formal import Spec, proved_and_covered
from tilewright.hw.conv.result.function import FunctionLookup
from tilewright.verify.formal import prove


class LookupSpec(Spec):
    """One byte of the LUT, at any place, and what becomes of the result that is in the register."""

    given, made = "i", "o"

    def __init__(self):
        self.dut = FunctionLookup(1)
        self.place = Signal(8)  # of the byte

    def specify(self, m, dut):
        begun, was_function, was_place = Signal(), Signal(), Signal(8)
        m.d.sync += [begun.eq(1), was_function.eq(dut.function), was_place.eq(self.place)]
        m.d.comb += [
            # A job begins when the results of the one before have gone, and brings each row once.
            Assume(~dut.start | (~dut.held & ~dut.i.valid)),
            Assume(~dut.row.valid | (~dut.rows[-1] & dut.function & ~dut.start)),
            Assert(dut.rows <= 16),
        ]
        with m.If(begun):
            m.d.comb += Assume(self.place == was_place)
            with m.If(~dut.start):
                m.d.comb += Assume(dut.function == was_function)

        loaded, byte = Signal(), Signal(8)  # the byte has come
        with m.If(dut.start):
            m.d.sync += loaded.eq(0)
        with m.Elif(dut.row.valid & (dut.rows == self.place[4:])):
            m.d.sync += [loaded.eq(1), byte.eq(dut.row.bytes.as_value().word_select(self.place[:4], 8))]
        probe = dut.memory.read_port(domain="comb")
        m.d.comb += [probe.addr.eq(self.place[4:]), Assert(loaded == (dut.rows > self.place[4:]))]
        with m.If(loaded):
            m.d.comb += Assert(probe.data.as_value().word_select(self.place[:4], 8) == byte)

        accepted, left = dut.i.valid & dut.i.ready, dut.o.valid & dut.o.ready
        selected, under_way = Signal(), Signal()  # the result in the register selects the byte; there is one
        with m.If(accepted):
            m.d.sync += selected.eq(dut.i.payload[0] == self.place)
        m.d.sync += under_way.eq(dut.function & (accepted | (under_way & ~left)))
        m.d.comb += [
            Assert(under_way == dut.held),
            Assert(~under_way | (dut.function & dut.rows[-1])),
            Assert(~(accepted & under_way) | left),  # one after the other
        ]
        with m.If(dut.function & dut.o.valid & selected):
            m.d.comb += Assert(dut.o.payload[0] == byte)
        with m.If(~dut.function):
            m.d.comb += [Assert(dut.o.valid == dut.i.valid), Assert(dut.o.payload == dut.i.payload)]
            m.d.comb += Assert(dut.i.ready == dut.o.ready)
        # At full rate if there is no stall.
        with m.If(dut.function & dut.rows[-1] & dut.o.ready):
            m.d.comb += Assert(dut.i.ready)
        m.d.comb += Cover(left & selected & dut.function & (byte == 0x5A))


@proved_and_covered(2, 24)
def test_results_select_bytes_of_the_lut(mode, depth):
    prove(LookupSpec(), name=f"function-{mode}", mode=mode, depth=depth, proves="F1")
