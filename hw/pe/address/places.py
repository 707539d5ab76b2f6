"""What coordinates of elements add to the numbers of their pages, and to their places in them."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec.pe.segment import MAX_PAGE_LOG2

from ..params import LANES

__all__ = ["Places"]


class Places(wiring.Component):
    """Splits a coordinate of each lane into page coordinate and place, and weighs both: two products a lane.

    A shift to the left is a product with a power of two. A page coordinate is a shift to the right: it is taken from
    the upper half of a product with what is shifted to the left by the rest of eight.

    Latency 2, one coordinate a lane and cycle. All is modulo the width of the result: of coordinates that are inside,
    nothing is lost.

    Members
    -------
    enable : In(1)
        The pipeline moves.
    coordinates : In(array of LANES 16)
    page_log2 : In(4)
        Log2 of the elements of a page in this dimension; goes with the coordinates, as the next two.
    pages_below : In(unsigned(params.page_width + 1))
        Pages from one page coordinate to the next.
    shift : In(5)
        Log2 of bytes from one place to the next.
    pages : Out(array of LANES params.page_width)
        Shares of the page number, two cycles later.
    offsets : Out(array of LANES 20)
        Shares of the offset in the page, in bytes, two cycles later; dimensions have no bit in common.
    """

    def __init__(self, params):
        self._params = params
        super().__init__(
            {
                "enable": In(1),
                "coordinates": In(data.ArrayLayout(16, LANES)),
                "page_log2": In(4),
                "pages_below": In(params.page_width + 1),
                "shift": In(5),
                "pages": Out(data.ArrayLayout(params.page_width, LANES)),
                "offsets": Out(data.ArrayLayout(MAX_PAGE_LOG2, LANES)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        width = self._params.page_width
        low, high = self.page_log2[:3], self.page_log2[3]
        weight = Signal(width + 1 + 8)  # of a page coordinate that is ``low`` bits to the left, times 2^8
        power, far = Signal(16), Signal()  # the shift, modulo 16; it is 16 or more
        ones, distance, was_far = Signal(16), Signal(5), Signal()
        mask = Signal(MAX_PAGE_LOG2)  # ones where the place is in an offset
        with m.If(self.enable):
            m.d.sync += [
                weight.eq((self.pages_below << 8) >> low),
                power.eq(1 << self.shift[:4]),
                far.eq(self.shift[4]),
                ones.eq((1 << self.page_log2) - 1),
                distance.eq(self.shift),
                mask.eq(ones << distance),
                was_far.eq(far),
            ]
        for lane, coordinate in enumerate(self.coordinates):
            whole = Signal(16, name=f"whole{lane}")
            # Without a reset these are registers that multipliers have.
            product = Signal(MAX_PAGE_LOG2, name=f"product{lane}", reset_less=True)
            share = Signal(width, name=f"share{lane}", reset_less=True)
            page = Signal(16, name=f"page{lane}", reset_less=True)  # but for places; its reset is their gate
            with m.If(self.enable):
                m.d.sync += [
                    whole.eq(coordinate),
                    page[:8].eq(Mux(high, coordinate[8:], coordinate[:8])),
                    page[8:].eq(coordinate[8:]),
                    product.eq(whole * power),
                    share.eq((page * weight)[8:]),
                ]
                for bit in range(7):
                    with m.If(low > bit):
                        m.d.sync += page[bit].eq(0)
                with m.If(high):
                    m.d.sync += page[8:].eq(0)
            # Where it is far, the mask has no bit before 16.
            moved = Cat(product[:16], Mux(was_far, product[:4], product[16:]))
            m.d.comb += [self.offsets[lane].eq(moved & mask), self.pages[lane].eq(share)]
        return m
