"""Meanings are found where they are declared."""

from enum import IntEnum

from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec import Element
from tilewright.sim.package.meanings import field_docs, member_docs, port_docs


class Colour(IntEnum):
    """A colour."""

    RED = 1  #: of ``fire``
    BLUE = 4


class PairLayout(data.StructLayout):
    """Two numbers."""

    def __init__(self):
        super().__init__(
            {
                "left": 3,  # the first, of two
                "right": 4,
            }
        )


def shared_members():
    """Members of several.

    clear : In(1)
        Drops all.
    """
    return {"clear": In(1)}


class Adder(wiring.Component):
    """Adds.

    Members
    -------
    a, b : In(8)
        Numbers to add,
        of eight bits.
    total : Out(stream of 9)
    **shared_members()

    Attributes
    ----------
    nothing : int
        Is said of this.
    """

    def __init__(self):
        super().__init__({"a": In(8), "b": In(8), "total": Out(stream.Signature(9))} | shared_members())


def test_comments_of_members():
    assert member_docs(Colour) == {"RED": "of ``fire``"}
    assert member_docs(Element) == {"TF32": "32 bits in memory, rounded to ten mantissa bits by a load"}


def test_comments_of_fields():
    assert field_docs(PairLayout) == {"left": "The first, of two."}


def test_texts_of_ports():
    numbers = "Numbers to add, of eight bits."
    assert port_docs(Adder) == {"a": numbers, "b": numbers, "total": "", "clear": "Drops all."}
