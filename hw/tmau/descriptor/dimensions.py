"""A descriptor read dimension by dimension, for blocks that look at one dimension a cycle."""

from amaranth.hdl import Cat, Module, Mux, Signal, signed, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from tilewright.spec import DESCRIPTOR, Interleave, Mode

from ...lib.layouts import packed_layout

__all__ = ["PART", "DimensionLayout", "DimensionReader", "Extent"]

#: Bits of a stride that a pass is about; three passes are about all 40.
PART = 14

_DIMENSIONS = range(5)
_PASSES = 3


class DimensionLayout(data.StructLayout):
    """One dimension of a descriptor. Numbers are as stored."""

    def __init__(self):
        super().__init__(
            {
                "passes": unsigned(_PASSES),  # one-hot: which time the dimensions pass; 0: there is none
                "at": unsigned(5),  # one-hot: its number
                "place": unsigned(5),  # one-hot: where it is in the order of the walk
                "used": unsigned(1),  # the rank reaches it
                "size": unsigned(32),
                "stride": unsigned(40),  # of dimension 0: the bytes of a unit
                "part": unsigned(PART),  # of the stride, what this pass is about: the most significant part first
                "box": unsigned(8),
                "traversal": unsigned(4),
                "lower": signed(16),  # corners of a spatial dimension of im2col, otherwise 0
                "upper": signed(16),
            }
        )


class DimensionReader(wiring.Component):
    """Shows the five dimensions of a descriptor, one a cycle, three times over.

    Latency 1 from ``start``, and 15 cycles of dimensions. Their *place* is the number of ``ListedLayout``: dimensions
    that the rank does not reach take the places of those that the tensor lacks.
    """

    def __init__(self):
        super().__init__(
            {
                # Must hold from the cycle after ``start`` on.
                "raw": In(packed_layout(DESCRIPTOR)),
                # Log2 of the bytes of a unit.
                "unit_log2": In(3),
                # Strobe; not while dimensions pass.
                "start": In(1),
                # Registered.
                "dimension": Out(DimensionLayout()),
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
    """Numbers of the dimensions in the order of an im2col walk; those beyond the rank where it lacks one."""
    channel, first = (rank - 2, 0) if interleaved else (0, 1)
    spatial = [*range(first, first + rank - 2), *range(rank, 5)]
    return [channel, *spatial, rank - 1]


_SUM = 75  # address, unit and four products of 72 bits


class Extent(wiring.Component):
    """Adds up the bytes from a tensor's address to its last byte.

    Each pass multiplies the sizes by one part of the strides, the most significant part first, and moves the sum up in
    between. The unit of dimension 0 is among the strides.
    """

    dimension: In(DimensionLayout())
    # Of the tensor.
    address: In(64)
    # Log2 of the bytes of a unit.
    unit_log2: In(3)
    # Address of the last byte, without wrap; valid from two cycles after the last dimension of the last pass until the
    # next descriptor.
    last: Out(_SUM)

    def elaborate(self, platform):
        m = Module()
        seen, first = self.dimension, self.dimension.at[0]
        product, total = Signal(32 + PART), Signal(_SUM)
        tail = Signal(5)
        begins, moves = Signal(), Signal()  # what the dimension before this one asked for
        # Sizes are stored minus one: what is missing is the rest of one unit, where the product of units has zeros.
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
