"""Derivation: what every command on a descriptor needs and no coordinate changes.

Specification: docs/tmau.md, "Tensor descriptor" to "Im2col mode".
"""

from amaranth import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec import DESCRIPTOR, NAN_FILL, Element, Fill, Interleave, Mode, Swizzle

from ...lib.formats import packed_layout
from .layouts import CheckedLayout

__all__ = ["Derivation", "walk_order"]

_ROW_BITS = 14  # the longest row is 256 slices of 32 bytes


def walk_order(descriptor, values, absent):
    """One value a dimension of a descriptor, in the order of the walk.

    In tile mode that is the descriptor's order. In im2col mode it is C, W, H, D, N, where ``absent`` stands for spatial
    dimensions that the tensor lacks, and C is the C-slice with interleave.

    Parameters
    ----------
    descriptor : view
        Has ``rank``, ``im2col`` and ``interleaved``.
    values : sequence of five Values
        Of dimensions 0 to 4.
    absent : Value

    Returns
    -------
    list of five Values
    """
    rank3, rank4, sliced = descriptor.rank == 3, descriptor.rank == 4, descriptor.interleaved
    slice_ = Mux(rank3, values[1], Mux(rank4, values[2], values[3]))
    order = [
        Mux(sliced, slice_, values[0]),
        Mux(sliced, values[0], values[1]),
        Mux(rank3, absent, Mux(sliced, values[1], values[2])),
        Mux(rank3 | rank4, absent, Mux(sliced, values[2], values[3])),
        Mux(rank3, values[2], Mux(rank4, values[3], values[4])),
    ]
    return [Mux(descriptor.im2col, moved, value) for moved, value in zip(order, values, strict=True)]


class Derivation(wiring.Component):
    """Works out :class:`CheckedLayout` in four steps: one product for sizes and one for the footprint in each.

    Members
    -------
    raw : In(packed_layout(DESCRIPTOR))
        Complete from the second step on; in the first without its upper half.
    quotients : In(array of 5 9)
        Box over traversal, rounded up; of all dimensions, whether a traversal counts or not. From the first step on.
    step : In(4)
        One-hot; one step a cycle.
    checked : Out(CheckedLayout)
        Valid in the last step.
    """

    def __init__(self, params):
        self.params = params
        super().__init__(
            {
                "raw": In(packed_layout(DESCRIPTOR)),
                "quotients": In(data.ArrayLayout(9, 5)),
                "step": In(4),
                "checked": Out(CheckedLayout(params)),
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
        ]
        with m.Switch(raw.fill):
            with m.Case(Fill.NAN):
                m.d.comb += checked.fill.eq(NAN_FILL)
            with m.Case(Fill.CONSTANT):
                m.d.comb += checked.fill.eq(raw.fill_constant)
        self._dimensions(m)
        self._row(m)
        self._extent(m)
        self._corners(m)
        return m

    def _dimensions(self, m):
        """Unit, counts, and everything that is listed in the order of the walk."""
        raw, checked = self.raw, self.checked
        with m.Switch(raw.element):
            for element in Element:
                with m.Case(element):
                    m.d.comb += checked.unit_log2.eq(element.bytes.bit_length() - 1)
        with m.If(checked.interleaved):
            m.d.comb += checked.unit_log2.eq(Mux(raw.interleave == Interleave.B32, 5, 4))

        honoured = (raw.gather0 | checked.interleaved) & ~checked.im2col
        m.d.comb += checked.gather.eq(honoured & raw.traversal0.any())
        channels = Mux(checked.interleaved, 1, raw.channels + 1)
        m.d.comb += checked.counts[0].eq(Mux(checked.im2col, channels, Mux(honoured, self.quotients[0], raw.box0 + 1)))
        for d in range(1, 5):  # a command takes one slice of C
            sliced = checked.interleaved & (raw.rank == d + 2)
            m.d.comb += checked.counts[d].eq(Mux(sliced, 1, self.quotients[d]))

        unit = Signal(6)
        m.d.comb += unit.eq(1 << checked.unit_log2)
        sizes = walk_order(checked, [raw[f"size{d}"] for d in range(5)], 0)
        strides = walk_order(checked, [unit, *(raw[f"stride{k}"] for k in range(4))], 0)
        tile = [Mux(honoured, raw.traversal0, 0), *(raw[f"traversal{d}"] for d in range(1, 5))]
        steps = walk_order(checked, [raw[f"traversal{d}"] for d in range(5)], 0)
        for d in range(5):
            m.d.comb += [checked.sizes[d].eq(sizes[d]), checked.strides[d].eq(strides[d])]
            # Im2col steps in the spatial dimensions only.
            m.d.comb += checked.traversals[d].eq(Mux(checked.im2col, steps[d] if d in (1, 2, 3) else 0, tile[d]))

    def _row(self, m):
        """Bytes of runs, of the transfer and of its footprint; what of them adjoins."""
        raw, checked, step = self.raw, self.checked, self.step
        length = checked.footprint.shape().width
        row_bytes, pitch, span = Signal(_ROW_BITS), Signal(_ROW_BITS), Signal(8)
        row = Signal(_ROW_BITS)  # the same a cycle later, where there is time
        m.d.comb += [
            row_bytes.eq(checked.counts[0] << checked.unit_log2),
            span.eq(Mux(raw.swizzle == Swizzle.NONE, 0, 16 << raw.swizzle)),
            pitch.eq(Mux(span > row_bytes, span, row_bytes)),
            checked.gapless.eq(span <= row),
            checked.gap.eq(Mux(checked.gapless, 0, span - row)),
        ]
        m.d.sync += row.eq(row_bytes)
        # One multiplier each for runs and footprint: one dimension a cycle. The last product is not registered but goes
        # straight to the cache. The rows of im2col are its pixels.
        count = Signal(11)
        for d in range(4):
            with m.If(step[d]):
                m.d.comb += count.eq(Mux(checked.im2col, 1 if d else raw.pixels + 1, checked.counts[d + 1]))
        run, footprint, overflow = Signal(length), Signal(length), Signal()
        next_run, next_footprint = Signal(length), Signal(max(length, _ROW_BITS) + len(count))
        m.d.comb += next_run.eq(Mux(step[0], row_bytes, run) * count)
        m.d.comb += next_footprint.eq(Mux(step[0], pitch, footprint) * count)
        spilled = next_footprint[length:].any() | (overflow & ~step[0])
        m.d.sync += [run.eq(next_run), footprint.eq(next_footprint), overflow.eq(spilled)]

        run_bytes = [row, *(Signal(length, name=f"run_bytes{k}") for k in range(1, 4)), next_run]
        for d in range(3):
            with m.If(step[d]):
                m.d.sync += run_bytes[d + 1].eq(next_run)
        m.d.comb += [checked.footprint.eq(next_footprint), checked.too_large.eq(spilled)]
        m.d.comb += [checked.run_bytes[d].eq(run_bytes[d]) for d in range(5)]
        folds = checked.gapless & ~checked.gather & ~checked.im2col
        for k in range(4):
            adjoins = (raw[f"stride{k}"] == run_bytes[k]) & ~raw[f"traversal{k + 1}"].any()
            m.d.comb += checked.contiguous[k].eq(folds & adjoins)

    def _extent(self, m):
        """Address of the last byte of the tensor: two products each in the second and third step, then their sum."""
        raw, checked, step = self.raw, self.checked, self.step
        dims = ((1, 3), (2, 4))
        products = [Signal(72, name=f"product{n}") for n in range(len(dims))]
        for product, (early, late) in zip(products, dims, strict=True):
            size = Mux(step[1], raw[f"size{early}"], raw[f"size{late}"])
            m.d.sync += product.eq(size * Mux(step[1], raw[f"stride{early - 1}"], raw[f"stride{late - 1}"]))
        partial, last = Signal(75), Signal(75)
        row = raw.size0 + 1 << checked.unit_log2
        m.d.sync += partial.eq(raw.address + (row - 1) + products[0] + products[1])
        m.d.comb += [
            last.eq(partial + products[0] + products[1]),
            checked.last.eq(last),
            checked.beyond.eq(last[self.params.addr_width :].any()),
        ]

    def _corners(self, m):
        """The bounding box of im2col."""
        raw, checked = self.raw, self.checked
        uppers = []
        for k in range(3):
            exists = checked.im2col & (raw.rank > k + 2)
            upper = Signal(signed(16), name=f"upper{k}")
            with m.If(exists):
                m.d.comb += [checked.lows[k].eq(raw[f"lower{k}"]), upper.eq(raw[f"upper{k}"])]
            m.d.comb += checked.highs[k].eq(checked.sizes[k + 1] + upper + 1)
            uppers.append(upper)

        corner = checked.store_corner
        lows = [checked.lows[k] for k in range(3)]
        broken = Cat(*(low < 0 for low in lows), *(upper > 0 for upper in uppers))
        m.d.comb += corner.broken.eq(broken.any())
        m.d.comb += corner.upper.eq(~broken[:3].any())
