"""Passes over a design that leave what need not change: they replace the same."""

import pytest
from amaranth.hdl import Array, Cat, ClockDomain, ClockSignal, Mux, ResetSignal, Signal, Value
from amaranth.hdl._xfrm import DomainLowerer

from tilewright.verify.pysim.engine.passes import quick_passes

DATA, CLOCK, RESET = Signal(8, name="data"), ClockSignal(), ResetSignal()

VALUES = {
    "operator": DATA + RESET,
    "slice": (DATA - RESET)[1:4],
    "part": (DATA ^ RESET).bit_select(DATA[1:3], 2),
    "offset": DATA.word_select(Cat(CLOCK, DATA[0]), 2),
    "concat": Cat(DATA[:3], CLOCK, DATA),
    "mux": Mux(RESET, DATA, 5),
    "choice": Mux(DATA[0], DATA, CLOCK),
    "array": Value.cast(Array([DATA, RESET.as_signed(), CLOCK])[DATA[:2]]),
}


@pytest.mark.parametrize("kind", VALUES)
def test_what_is_replaced_is_replaced_everywhere(kind):
    replaced = DomainLowerer({"sync": ClockDomain("sync")})
    before = repr(replaced.on_value(VALUES[kind]))
    with quick_passes():
        assert repr(replaced.on_value(VALUES[kind])) == before
    assert before != repr(VALUES[kind])


def test_what_holds_nothing_to_replace_stays():
    value = Cat(Mux(DATA[0], ~DATA, DATA.bit_select(DATA[:2], 2)), DATA[1:3])
    with quick_passes():
        with quick_passes():
            pass
        assert DomainLowerer().on_value(value) is value
    assert DomainLowerer().on_value(value) is not value
