"""Interfaces join only if their payloads mean the same; members of a component join as one interface."""

import pytest
from amaranth import Module, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from tilewright.hw.lib.component import Port, alike, bundle, join
from tilewright.hw.lib.stream import SkidBuffer
from tilewright.verify.pysim.simulate import simulate

POINT = data.StructLayout({"x": unsigned(4), "y": unsigned(4)})


def test_equal_payloads_join():
    m = Module()
    first, second = SkidBuffer(POINT), SkidBuffer(POINT)
    m.submodules += [first, second]
    join(m, first=first.o, second=second.i)
    join(m, outside=stream.Signature(POINT).create(), second=first.i)


def test_payloads_of_equal_width_and_other_meaning_do_not_join():
    m = Module()
    first, second = SkidBuffer(POINT), SkidBuffer(unsigned(8))
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


SIGNATURE = wiring.Signature({"i": In(stream.Signature(4)), "o": Out(4), "unused": Out(1)})


class Inner(wiring.Component):
    port: Out(SIGNATURE)

    def elaborate(self, platform):
        m = Module()
        m.d.comb += [self.port.o.eq(self.port.i.payload + 1), self.port.i.ready.eq(1)]
        return m


class Top(wiring.Component):
    def __init__(self):
        super().__init__({**SIGNATURE.members, "other": Out(1)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.inner = inner = Inner()
        connect(m, inner=inner.port, top=flipped(bundle(self, SIGNATURE)))
        return m


def test_members_of_a_component_join_as_one_interface():
    dut = Top()

    async def testbench(ctx):
        ctx.set(dut.i.payload, 6)
        assert ctx.get(dut.o) == 7
        assert ctx.get(dut.i.ready)

    simulate(dut, testbench)


class _Once:
    def instance(self, component, parameters):
        return component, parameters


def test_nothing_changes_where_the_platform_has_no_instances():
    component = object()
    assert all(alike(platform, component, 1) is component for platform in (None, "formal"))


def test_a_platform_is_asked_with_the_parameters():
    component = object()
    assert alike(_Once(), component, 1, "i8") == (component, (1, "i8"))
