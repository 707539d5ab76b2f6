"""Numbers of a descriptor that all its commands share (docs/tmau.md, "Tensor descriptor" to "Im2col mode")."""

from itertools import pairwise

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from tilewright.spec import DESCRIPTOR, NAN_FILL, Element, Fill, Interleave, Mode, Swizzle

from ...lib.layouts import packed_layout
from .dimensions import DimensionLayout
from .layouts import CheckedLayout, DerivedLayout

__all__ = ["Derivation"]

_ROW_BITS = 14  # the longest row is 256 slices of 32 bytes
_COUNT_BITS = 11  # 1 to 1024 pixels
_SHIFT = 11
#: floor(n / d) = n * factor >> _SHIFT for all n up to 263, and with d = 1 for all counts.
_RECIPROCALS = [-(-(1 << _SHIFT) // divisor) for divisor in range(1, 9)]


class Derivation(wiring.Component):
    """Computes :class:`CheckedLayout`, except ``last`` and ``beyond``, with one multiplier.

    The first pass divides boxes by traversals, the second multiplies the counts to bytes of runs, the third to the
    footprint. Numbers of single dimensions leave with strobes, the others are valid at the end.
    """

    def __init__(self, params):
        self._params = params
        super().__init__(
            {
                # Constant from the cycle before the first dimension.
                "raw": In(packed_layout(DESCRIPTOR)),
                "dimension": In(DimensionLayout()),
                # Log2 of the bytes of a unit. Combinational from ``raw``.
                "unit_log2": Out(3),
                # Valid from the cycle after the last dimension of the last pass until the next descriptor. ``last`` and
                # ``beyond`` are zero.
                "checked": Out(CheckedLayout(params)),
                # Dimensions, one by one before.
                "lists": Out(DerivedLayout(params)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        raw, checked = self.raw, self.checked
        m.d.comb += [
            checked.address.eq(raw.address),
            checked.rank.eq(raw.rank),
            checked.im2col.eq(raw.mode == Mode.IM2COL),
            checked.interleaved.eq(raw.interleave != Interleave.NONE),
            checked.element.eq(raw.element),
            checked.pixels.eq(raw.pixels),
            checked.swizzle.eq(raw.swizzle),
            checked.unit_log2.eq(self.unit_log2),
        ]
        with m.Switch(raw.fill):
            with m.Case(Fill.NAN):
                m.d.comb += checked.fill.eq(NAN_FILL)
            with m.Case(Fill.CONSTANT):
                m.d.comb += checked.fill.eq(raw.fill_constant)
        with m.If(checked.interleaved):
            m.d.comb += self.unit_log2.eq(Mux(raw.interleave == Interleave.B32, 5, 4))
        with m.Else(), m.Switch(raw.element):
            for element in Element:
                with m.Case(element):
                    m.d.comb += self.unit_log2.eq(element.bytes.bit_length() - 1)
        gathers = (raw.gather0 | checked.interleaved) & ~checked.im2col
        m.d.comb += checked.gather.eq(gathers & raw.traversal0.any())
        self._dimension(m, gathers)
        self._rows(m, *self._divide(m, gathers))
        return m

    def _dimension(self, m, gathers):
        """Numbers of a single dimension."""
        dimension, checked, lists = self.dimension, self.checked, self.lists
        m.d.comb += [
            lists.axis_stb.eq(dimension.passes[0]),
            lists.axis.eq(_number(dimension.place)),
            lists.listed.size.eq(dimension.size),
            lists.listed.stride.eq(dimension.stride),
            lists.listed.traversal.eq(self._traversal(gathers)),
            lists.listed.low.eq(dimension.lower),
            lists.listed.high.eq(dimension.size + dimension.upper + 1),
        ]
        below, above = Signal(), Signal()  # a lower corner is before the tensor, an upper corner after it
        with m.If(dimension.passes[0]):
            m.d.sync += [
                below.eq((below & ~dimension.at[0]) | (dimension.lower < 0)),
                above.eq((above & ~dimension.at[0]) | (dimension.upper > 0)),
            ]
        m.d.comb += [checked.store_corner.broken.eq(below | above), checked.store_corner.upper.eq(~below)]

    def _traversal(self, gathers):
        """Step of the dimension minus one; in im2col mode C has no step."""
        dimension, im2col = self.dimension, self.checked.im2col
        if not self._params.strides_over:
            return Const(0)
        return Mux(Mux(im2col, ~dimension.place[0], ~dimension.at[0] | gathers), dimension.traversal, 0)

    def _divide(self, m, gathers):
        """Operands of the first pass, one cycle late: the number of indices, and the reciprocal of their step."""
        raw, dimension, checked = self.raw, self.dimension, self.checked
        minus_one, step = Signal(10), Signal(3)
        sliced = Cat(checked.interleaved & (raw.rank == d + 2) for d in range(5))
        with m.If(checked.im2col):  # its rows are pixels
            with m.If(dimension.at[0] & ~checked.interleaved):
                m.d.comb += minus_one.eq(raw.channels)
            with m.If(dimension.at[1]):
                m.d.comb += minus_one.eq(raw.pixels)
        with m.Elif(~(dimension.at & sliced).any()):  # a command takes one slice of C
            m.d.comb += [minus_one.eq(dimension.box), step.eq(self._traversal(gathers))]
        dividing, dividend = Signal(), Signal(_COUNT_BITS)
        factor = Signal(_SHIFT + 1)
        # ceil(n / t) = floor((n + t - 1) / t); both are stored minus one.
        m.d.sync += [dividing.eq(dimension.passes[0]), dividend.eq(minus_one + 1 + step)]
        with m.Switch(step):
            for stored, reciprocal in enumerate(_RECIPROCALS):
                with m.Case(stored):
                    m.d.sync += factor.eq(reciprocal)
        return dividing, dividend, factor

    def _rows(self, m, dividing, dividend, factor):
        """Counts, bytes of runs, of the transfer and of the footprint, and contiguous dimensions."""
        dimension, checked, raw, lists = self.dimension, self.checked, self.raw, self.lists
        length = len(checked.footprint)
        first, second, third = dimension.at[0], dimension.passes[1], dimension.passes[2]
        # The counts rotate, one dimension a cycle. In the second and third pass the current dimension has the second
        # count, because the divisions are one cycle late.
        counts = [Signal(_COUNT_BITS, name=f"count{n}") for n in range(5)]
        chain = Signal(max(length, _ROW_BITS))
        product = Signal(len(chain) + _COUNT_BITS + 1)
        m.d.comb += product.eq(Mux(dividing, dividend, chain) * Mux(dividing, factor, counts[1]))
        with m.If(dividing | second | third):
            m.d.sync += [
                *(count.eq(after) for count, after in pairwise(counts)),
                counts[4].eq(Mux(dividing, product >> _SHIFT, counts[0])),
            ]

        row, span, shift = Signal(_ROW_BITS), Signal(8), Signal.like(self.unit_log2)
        # These depend only on the descriptor, which has been constant for a pass.
        m.d.sync += [
            shift.eq(self.unit_log2),
            span.eq(Mux((raw.swizzle == Swizzle.NONE) | checked.interleaved, 0, 16 << raw.swizzle)),
        ]
        m.d.comb += [
            row.eq(counts[1] << shift),
            checked.footprint.eq(chain),
            # Of the previous dimension; of the last one when the next pass begins.
            lists.row_stb.eq((second & ~first) | (third & first)),
            lists.row.eq(_number(Cat(dimension.at[1:], first))),
            lists.listed.count.eq(counts[0]),
            lists.listed.bytes.eq(chain),
        ]
        with m.If(third & first):
            m.d.sync += checked.bytes.eq(chain)
        gapless, gap = Signal(), Signal(8)
        with m.If(second & first):
            m.d.sync += [chain.eq(row), gapless.eq(span <= row), gap.eq(Mux(span <= row, 0, span - row))]
        with m.Elif(third & first):
            m.d.sync += [chain.eq(Mux(gapless, row, span)), checked.too_large.eq(0)]
        with m.Elif(second | third):
            m.d.sync += chain.eq(product)
            # The first product already contains the whole row, so that a row that is too long is detected, too.
            m.d.sync += checked.too_large.eq(checked.too_large | product[length:].any())
        folds = gapless & ~checked.gather & ~checked.im2col & (lists.listed.traversal == 0)
        for k in range(4):
            with m.If(second & dimension.at[k + 1]):
                m.d.sync += checked.contiguous[k].eq(folds & (dimension.stride == chain))
        m.d.comb += [checked.gapless.eq(gapless), checked.gap.eq(gap)]


def _number(one_hot):
    """The number of the set bit of five."""
    return Cat(one_hot[1] | one_hot[3], one_hot[2] | one_hot[3], one_hot[4])
