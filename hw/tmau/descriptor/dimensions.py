"""A descriptor read one dimension a cycle, and the end of its tensor."""

from amaranth.hdl import Cat, Module, Mux, Signal, signed, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from tilewright.spec import DESCRIPTOR, Interleave, Mode

from ...lib.layouts import packed_layout

__all__ = ["PART", "DimensionLayout", "DimensionReader", "Extent"]

#: Bits of a stride per pass; three passes cover all 40.
PART = 14

_DIMENSIONS = range(5)
_PASSES = 3


class DimensionLayout(data.StructLayout):
    """One dimension of a descriptor, with numbers as stored."""

    def __init__(self):
        super().__init__(
            {
                "passes": unsigned(_PASSES),  # one-hot: number of the pass; 0: no dimension
                "at": unsigned(5),  # one-hot: its number
                "place": unsigned(5),  # one-hot: its position in the order of the walk
                "used": unsigned(1),  # the rank reaches it
                "size": unsigned(32),
                "stride": unsigned(40),  # of dimension 0: the bytes of a unit
                "part": unsigned(PART),  # part of the stride for this pass, the most significant first
                "box": unsigned(8),
                "traversal": unsigned(4),
                "lower": signed(16),  # corners of a spatial dimension of im2col, otherwise 0
                "upper": signed(16),
            }
        )


class DimensionReader(wiring.Component):
    """Shows the five dimensions of a descriptor, one a cycle, in three passes.

    Latency 1 from ``start``, followed by 15 cycles of dimensions. The *place* of a dimension is its number in
    ``ListedLayout``; unused dimensions take the places of missing ones.
    """

    def __init__(self):
        super().__init__(
            {
                "raw": In(packed_layout(DESCRIPTOR)),  # Constant from the cycle after ``start``.
                "unit_log2": In(3),  # Log2 of the bytes of a unit.
                "start": In(1),  # Strobe; not during the passes.
                "dimension": Out(DimensionLayout()),  # Registered.
            }
        )

    def elaborate(self, platform):
        m = Module()
        raw, seen = self.raw, Signal(DimensionLayout())
        passes, number = Signal(_PASSES), Signal(range(5))
        with m.If(self.start):
            m.d.sync += [passes.eq(1), number.eq(0)]
        with m.Elif(number == 4):
            m.d.sync += [passes.eq(passes << 1), number.eq(0)]
        with m.Elif(passes.any()):
            m.d.sync += number.eq(number + 1)
        m.d.sync += self.dimension.eq(seen)

        im2col = raw.mode == Mode.IM2COL
        m.d.comb += [seen.passes.eq(passes), seen.used.eq(number < raw.rank)]
        with m.Switch(number):
            for d in _DIMENSIONS:
                with m.Case(d):
                    m.d.comb += [
                        seen.at.eq(1 << d),
                        seen.size.eq(raw[f"size{d}"]),
                        seen.stride.eq(raw[f"stride{d - 1}"] if d else 1 << self.unit_log2),
                        seen.box.eq(raw[f"box{d}"]),
                        seen.traversal.eq(raw[f"traversal{d}"]),
                    ]
        low, middle, high = (seen.stride[n * PART :][:PART] for n in range(_PASSES))
        m.d.comb += seen.part.eq(Mux(passes[0], high, Mux(passes[1], middle, low)))
        self._place(m, im2col, number, seen)
        corner = Signal(3)  # one-hot
        m.d.comb += corner.eq(Mux(im2col & seen.used, seen.place[1:4], 0))
        for name in ("lower", "upper"):
            chosen = [Mux(corner[k], raw[f"{name}{k}"].as_unsigned(), 0) for k in range(3)]
            m.d.comb += seen[name].eq(chosen[0] | chosen[1] | chosen[2])
        return m

    def _place(self, m, im2col, number, seen):
        """In im2col mode the order of the walk is C or its slice, W, H, D, N."""
        sliced = self.raw.interleave != Interleave.NONE
        m.d.comb += seen.place.eq(seen.at)
        with m.If(im2col), m.Switch(Cat(self.raw.rank, sliced)):
            for interleaved in (0, 1):
                for rank in (3, 4, 5):
                    with m.Case(rank | interleaved << 3), m.Switch(number):
                        for place, d in enumerate(_walk(rank, interleaved)):
                            with m.Case(d):
                                m.d.comb += seen.place.eq(1 << place)


def _walk(rank, interleaved):
    """Numbers of the dimensions in the order of an im2col walk, with unused ones for missing spatial dimensions."""
    channel, first = (rank - 2, 0) if interleaved else (0, 1)
    spatial = [*range(first, first + rank - 2), *range(rank, 5)]
    return [channel, *spatial, rank - 1]


_SUM = 75  # address, unit and four products of 72 bits


class Extent(wiring.Component):
    """Computes the address of the last byte of a tensor, with one small multiplier.

    Each pass multiplies the sizes by one part of the strides, the most significant part first; the sum is shifted in
    between. The unit is the stride of dimension 0.
    """

    dimension: In(DimensionLayout())
    address: In(64)  # Of the tensor.
    unit_log2: In(3)  # Log2 of the bytes of a unit.
    # Does not wrap. Valid from two cycles after the last dimension of the last pass until the next descriptor.
    last: Out(_SUM)

    def elaborate(self, platform):
        m = Module()
        seen, first = self.dimension, self.dimension.at[0]
        product, total = Signal(32 + PART), Signal(_SUM)
        tail = Signal(5)
        begins, moves = Signal(), Signal()  # controls of the previous dimension
        # Sizes are stored minus one, so the rest of one unit is missing; the product of units has zeros there.
        with m.If(seen.passes[2] & first):
            m.d.comb += tail.eq((1 << self.unit_log2) - 1)
        m.d.sync += [
            begins.eq(seen.passes[0] & first),
            moves.eq((seen.passes[1] | seen.passes[2]) & first),
            product.eq(seen.size * seen.part | tail),
            total.eq(Mux(moves, total << PART, total) + product),
        ]
        with m.If(~seen.passes.any()):
            m.d.sync += product.eq(0)
        with m.If(begins):
            m.d.sync += total.eq(0)
        m.d.comb += self.last.eq(total + self.address)
        return m
