"""Where a field of a descriptor lies, for the command that changes one (docs/tmau.md, "Descriptor maintenance")."""

from amaranth import Module, Signal, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec import DESCRIPTOR

__all__ = ["FieldLocator", "PlaceLayout"]


class PlaceLayout(data.StructLayout):
    """Bits of a descriptor that an element of a field takes: all in one of its 64-bit words."""

    def __init__(self):
        super().__init__(
            {
                "no_field": unsigned(1),  # there is no field of this number; the others mean nothing
                "no_index": unsigned(1),  # the field has no such element
                "word": unsigned(4),  # number of the 64-bit word in the descriptor
                "lsb": unsigned(6),  # first bit in it
                "ones": unsigned(64),  # a one for each bit of the element, from bit 0 on
            }
        )


class FieldLocator(wiring.Component):
    """Looks a field up in ``golden.spec.DESCRIPTOR``. Combinational.

    Members
    -------
    field : In(8)
        Number of the field.
    index : In(3)
        Element of an array field, and 0 for others.
    place : Out(PlaceLayout)
    """

    field: In(8)
    index: In(3)
    place: Out(PlaceLayout())

    def elaborate(self, platform):
        m = Module()
        place, bit = self.place, Signal(10)
        m.d.comb += [place.word.eq(bit >> 6), place.lsb.eq(bit)]
        with m.Switch(self.field):
            for number, field in enumerate(DESCRIPTOR.fields):
                with m.Case(number):
                    m.d.comb += [
                        place.no_index.eq(self.index >= len(field.lsbs)),
                        place.ones.eq((1 << field.width) - 1),
                    ]
                    with m.Switch(self.index):
                        for index, lsb in enumerate(field.lsbs):
                            with m.Case(index):
                                m.d.comb += bit.eq(lsb)
            with m.Default():
                m.d.comb += place.no_field.eq(1)
        return m
