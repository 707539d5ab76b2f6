"""What one coordinate of an element adds to the number of its page, and to its place in it."""

from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec.pe.segment import MAX_PAGE_LOG2

__all__ = ["Place", "offset_mask"]


def offset_mask(m, enable, page_log2, shift):
    """Ones where the place in a page is in an offset, two cycles later: the same for all lanes.

    Parameters
    ----------
    m : Module
    enable : Value
    page_log2, shift : Value
        As of a :class:`Place`.

    Returns
    -------
    Signal
    """
    ones, distance = Signal(16), Signal.like(shift)
    mask = Signal(MAX_PAGE_LOG2)
    with m.If(enable):
        m.d.sync += [ones.eq((1 << page_log2) - 1), distance.eq(shift), mask.eq(ones << distance)]
    return mask


class Place(wiring.Component):
    """Splits a coordinate into page coordinate and place, and weighs both: one product and two shifts.

    Latency 2, one coordinate a cycle. All is modulo the width of the result: of coordinates that are inside, nothing
    is lost.

    Members
    -------
    enable : In(1)
        The pipeline moves.
    coordinate : In(16)
    page_log2 : In(4)
        Log2 of the elements of a page in this dimension.
    pages_below : In(unsigned(params.page_width + 1))
        Pages from one page coordinate to the next; goes with the coordinate.
    shift : In(5)
        Log2 of bytes from one place to the next; goes with the coordinate.
    mask : In(20)
        What :func:`offset_mask` makes of ``page_log2`` and ``shift``, two cycles later.
    page : Out(unsigned(params.page_width))
        Share of the page number, two cycles later.
    offset : Out(20)
        Share of the offset in the page, in bytes, two cycles later; dimensions have no bit in common.
    """

    def __init__(self, params):
        self._params = params
        super().__init__(
            {
                "enable": In(1),
                "coordinate": In(16),
                "page_log2": In(4),
                "pages_below": In(params.page_width + 1),
                "shift": In(5),
                "mask": In(MAX_PAGE_LOG2),
                "page": Out(params.page_width),
                "offset": Out(MAX_PAGE_LOG2),
            }
        )

    def elaborate(self, platform):
        m = Module()
        page, coordinate = Signal(self._params.page_width), Signal(16)
        pages_below, shift = Signal.like(self.pages_below), Signal.like(self.shift)
        moved = Signal(MAX_PAGE_LOG2)  # the coordinate, of which the mask leaves the place
        m.d.comb += self.offset.eq(moved & self.mask)
        with m.If(self.enable):
            m.d.sync += [
                page.eq(self.coordinate >> self.page_log2),
                coordinate.eq(self.coordinate),
                pages_below.eq(self.pages_below),
                shift.eq(self.shift),
                self.page.eq(page * pages_below),
                moved.eq(coordinate << shift),
            ]
        return m
