"""F8: the address is that of the first run plus, level by level, what the index's steps add up to."""

import pytest
from amaranth.hdl import Assert, Assume, Cover, Mux, Signal

from support.formal import Spec
from tilewright.hw.tmau.walk.address import AddressGenerator
from tilewright.verify.formal import prove

_WIDTH, _LEVELS = 16, 5


class AddressSpec(Spec):
    """Keeps index times stride of each level, by addition; a level may begin in the middle of a round."""

    def __init__(self, levels=_LEVELS):
        self.levels = levels
        self.dut = AddressGenerator(addr_width=_WIDTH, levels=levels)
        self.starts = [Signal(_WIDTH, name=f"start{d}") for d in range(levels)]

    def specify(self, m, dut):
        base, loaded = Signal(_WIDTH), Signal()
        terms = [Signal(_WIDTH, name=f"term{d}") for d in range(self.levels)]
        held = Signal(dut.strides.shape())
        m.d.sync += held.eq(dut.strides)
        m.d.comb += Assume(~dut.over.all())
        m.d.comb += Assume(Mux(dut.loading, dut.load | ~dut.step, ~dut.load))
        m.d.comb += Assume(dut.load | (dut.strides.as_value() == held.as_value()))
        # What a level begins with is part of all origins inside it, and not of its own.
        for d in range(self.levels - 1):
            m.d.comb += Assume(dut.origins[d] == (dut.origins[d + 1] + self.starts[d])[:_WIDTH])

        with m.If(dut.load):
            m.d.sync += [base.eq(dut.origins[self.levels - 1]), loaded.eq(1), terms[-1].eq(0)]
            m.d.sync += [term.eq(start) for term, start in zip(terms[:-1], self.starts, strict=False)]
        with m.Else():
            for d in range(self.levels):
                with m.If(dut.step & ~dut.over[d] & dut.over[:d].all()):
                    m.d.sync += [terms[d].eq(terms[d] + dut.strides[d]), *(inner.eq(0) for inner in terms[:d])]
        with m.If(loaded):
            m.d.comb += Assert(dut.address == (base + sum(terms))[:_WIDTH])
            for d, accumulator in enumerate(dut.rounds):
                m.d.comb += Assert(accumulator == (base + sum(terms[d:]))[:_WIDTH])
        m.d.comb += Cover(loaded & (terms[0] == 3) & (terms[2] == 5) & (terms[-1] == 7))


@pytest.mark.parametrize("levels", [5, 4])
def test_address_is_the_sum(levels):
    prove(AddressSpec(levels), name=f"address-{levels}", depth=2, proves="F8")


@pytest.mark.long
def test_sums_are_reached():
    prove(AddressSpec(), name="address-cover", mode="cover", depth=6)
