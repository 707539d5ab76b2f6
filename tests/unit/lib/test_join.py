"""Interfaces join only if their payloads mean the same."""

import pytest
from amaranth import Module, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import Out

from tilewright.hw.lib.join import Port, join
from tilewright.hw.lib.stream import Buffer

POINT = data.StructLayout({"x": unsigned(4), "y": unsigned(4)})


def test_equal_payloads_join():
    m = Module()
    first, second = Buffer(POINT), Buffer(POINT)
    m.submodules += [first, second]
    join(m, first=first.o, second=second.i)
    join(m, outside=stream.Signature(POINT).create(), second=first.i)


def test_payloads_of_equal_width_and_other_meaning_do_not_join():
    m = Module()
    first, second = Buffer(POINT), Buffer(unsigned(8))
    m.submodules += [first, second]
    with pytest.raises(TypeError, match="first and second must have one signature"):
        join(m, first=first.o, second=second.i)


def test_ports_are_equal_by_class_and_members():
    class Word(Port):
        def __init__(self, width):
            super().__init__({"word": Out(width)})

    class Other(Word):
        pass

    assert Word(4) == Word(4)
    assert Word(4) not in (Word(5), Other(4), wiring.Signature({"word": Out(4)}))
