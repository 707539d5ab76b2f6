"""F8: the address is the origin plus index times stride of every dimension, at full width and for ever."""

from amaranth import Cat, Module, Signal
from amaranth.hdl import Assert, Assume, Cover, Elaboratable

from tilewright.hw.tmau.address import AddressGenerator
from tilewright.sim.formal import prove


class AddressSpec(Elaboratable):
    """Counts index times stride of each dimension by adding, which keeps multiplication out of the proof."""

    def __init__(self, addr_width):
        self.dut = AddressGenerator(addr_width=addr_width)

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        width = len(dut.address)
        origin, loaded = Signal(width), Signal()
        strides = [Signal(width, name=f"stride{d}") for d in range(4)]
        shares = [Signal(width, name=f"share{d}") for d in range(4)]  # index times stride

        with m.If(dut.load):
            m.d.sync += [loaded.eq(1), origin.eq(dut.origin), *(share.eq(0) for share in shares)]
            m.d.sync += [stride.eq(dut.strides[d]) for d, stride in enumerate(strides)]
        for d in range(4):
            with m.If(dut.advance[d] & ~dut.load):
                m.d.sync += [shares[d].eq(shares[d] + strides[d]), *(share.eq(0) for share in shares[:d])]

        m.d.comb += Assume((dut.advance & (dut.advance - 1)) == 0)
        with m.If(loaded):
            m.d.comb += Assume(Cat(dut.strides[d] == strides[d] for d in range(4)).all())
            total = origin
            for d in reversed(range(4)):
                total = (total + shares[d])[:width]
                m.d.comb += Assert(dut.rounds[d] == total)
            m.d.comb += Assert(dut.address == total)
        m.d.sync += Cover(loaded & (shares[0] != 0) & (shares[3] != 0))
        return m

    def ports(self):
        return [self.dut.load, self.dut.origin, self.dut.strides, self.dut.advance]


def test_address_is_origin_plus_index_times_stride():
    spec = AddressSpec(48)
    prove(spec, spec.ports(), name="address", depth=2, proves="F8")


def test_address_spec_reaches_the_outer_dimensions():
    spec = AddressSpec(16)
    prove(spec, spec.ports(), name="address_cover", mode="cover", depth=8)
