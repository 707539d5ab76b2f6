"""How setup reads the dimensions of a checked descriptor."""

from amaranth.lib.wiring import In, Out

from ...lib.join import Port
from .layouts import ListedLayout

__all__ = ["ListSignature"]


class ListSignature(Port):
    """A read of one dimension of the descriptor that is shown, as the reader sees it.

    Members
    -------
    look : Out(1)
        Strobe: another dimension is wanted. Dimension 0 comes with the descriptor, without it.
    number : Out(3)
        Which one.
    listed : In(ListedLayout(params))
        It, from the cycle after until the next strobe.
    """

    def __init__(self, params):
        super().__init__({"look": Out(1), "number": Out(3), "listed": In(ListedLayout(params))})
