"""Signatures with a class, members as one interface, and modules that are shared."""

import pytest
from amaranth.hdl import Module
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from tilewright.hw.lib.component import Port, bundle, shared_module
from tilewright.hw.lib.stream import SkidBuffer
from tilewright.verify.pysim.simulate import simulate


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


def test_bundle_connects_as_one_interface():
    dut = Top()

    async def testbench(ctx):
        ctx.set(dut.i.payload, 6)
        assert ctx.get(dut.o) == 7
        assert ctx.get(dut.i.ready)

    simulate(dut, testbench)


def test_shared_module_asks_the_platform():
    class Platform:
        def instance(self, component, parameters):
            return component, parameters

    component = object()
    assert all(shared_module(platform, component, 1) is component for platform in (None, "formal"))
    assert shared_module(Platform(), component, 1, "i8") == (component, (1, "i8"))


def test_equal_widths_do_not_connect_different_layouts():
    """Tests refuse it (tests/conftest.py), Amaranth does not."""
    swapped = data.StructLayout({"y": 4, "x": 4})
    first, second = SkidBuffer(data.StructLayout({"x": 4, "y": 4})), SkidBuffer(swapped)
    with pytest.raises(TypeError, match=r"^first and second have different layouts at payload$"):
        connect(Module(), first=first.o, second=second.i)
