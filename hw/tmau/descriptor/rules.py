"""The rules of a descriptor, in hardware (docs/tmau.md, "Tensor descriptor")."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec import DESCRIPTOR, DESCRIPTOR_VERSION, Element, Error, Fill, Interleave, Mode, Swizzle

from ...lib.formats import packed_layout
from .layouts import FaultLayout

__all__ = ["DescriptorRules"]

_SPATIAL = range(3)  # W, H, D


class DescriptorRules(wiring.Component):
    """Finds the first rule that a descriptor breaks. Latency 2, one descriptor a cycle while ``raw`` holds.

    Members
    -------
    raw : In(packed_layout(DESCRIPTOR))
        Must hold until ``fault`` has been taken.
    reserved : In(1)
        A bit that belongs to no field is set.
    read_error : In(1)
        The bus answered with an error.
    fault : Out(FaultLayout)
        Lowest code, then lowest field number; a bus error is DESCRIPTOR_READ. Code NONE if every rule holds.
    """

    raw: In(packed_layout(DESCRIPTOR))
    reserved: In(1)
    read_error: In(1)
    fault: Out(FaultLayout())

    def elaborate(self, platform):
        m = Module()
        rules = [*self._header_rules(), *self._tensor_rules(m), *self._im2col_rules(m)]
        broken, chosen = Signal(len(rules)), Signal(len(rules))
        m.d.sync += broken.eq(Cat(condition for _, _, condition in rules))
        m.d.sync += chosen.eq(broken & -broken)  # the lowest one
        with m.Switch(chosen):
            for index, (code, field, _) in enumerate(rules):
                with m.Case(1 << index):
                    m.d.comb += [self.fault.code.eq(code), self.fault.field.eq(DESCRIPTOR.index(field))]
        return m

    # Every rule is (code, field, broken), in order of code and then of field number.

    def _header_rules(self):
        raw = self.raw
        restricted = (raw.interleave != Interleave.NONE) | (raw.mode == Mode.IM2COL)
        return [
            (Error.DESCRIPTOR_READ, "version", self.read_error),
            (Error.VERSION, "version", raw.version != DESCRIPTOR_VERSION),
            (Error.RESERVED, "version", self.reserved),
            (Error.RANK, "rank", (raw.rank == 0) | (raw.rank > 5) | (restricted & (raw.rank < 3))),
            (Error.ELEMENT, "element", raw.element > max(Element)),
            (Error.INTERLEAVE, "interleave", raw.interleave > max(Interleave)),
            (
                Error.FILL,
                "fill",
                (raw.fill > max(Fill)) | ((raw.fill == Fill.NAN) & (raw.element < Element.F16)),
            ),
        ]

    def _tensor_rules(self, m):
        raw = self.raw
        dims = range(5)
        used = [raw.rank > d for d in dims]
        interleaved, im2col = raw.interleave != Interleave.NONE, raw.mode == Mode.IM2COL
        # Address bits that alignment requires to be zero.
        low_bits = Signal(5)
        m.d.comb += low_bits.eq(
            Mux(raw.unaligned, self._element_bytes() - 1, Mux(raw.interleave == Interleave.B32, 31, 15))
        )
        # The box means nothing to im2col: its row is the channels of a pixel.
        row_bytes, span = Signal(12), Signal(8)
        m.d.comb += [
            row_bytes.eq((Mux(im2col, raw.channels, raw.box0) + 1) << self._element_log2()),
            span.eq(16 << raw.swizzle),
        ]
        too_long = (raw.swizzle != Swizzle.NONE) & ~interleaved & (row_bytes > span)
        wrong_span = (raw.interleave == Interleave.B32) & (raw.swizzle != Swizzle.B32)
        ragged = row_bytes[:4].any() & ~interleaved & ~im2col & ~raw.unaligned
        return [
            (Error.ADDRESS, "address", (raw.address[:5] & low_bits).any()),
            *((Error.STRIDE, "stride", used[d] & (raw[f"stride{d - 1}"][:5] & low_bits).any()) for d in dims[1:]),
            (Error.BOX, "box", ragged),
            *((Error.TRAVERSAL, "traversal", used[d] & raw[f"traversal{d}"][3]) for d in dims),
            (Error.SWIZZLE, "swizzle", too_long | wrong_span),
            *(
                (Error.UNUSED, field, ~used[d] & raw[f"{field}{d - first}"].any())
                for field, first in (("size", 0), ("box", 0), ("traversal", 0), ("stride", 1))
                for d in dims[1:]
            ),
        ]

    def _im2col_rules(self, m):
        raw = self.raw
        interleaved, im2col = raw.interleave != Interleave.NONE, raw.mode == Mode.IM2COL
        exists = [im2col & (raw.rank > k + 2) for k in _SPATIAL]

        def oversized(corner):
            """The corner has more than 16, 8 or 5 bits, for one, two or three spatial dimensions."""
            above = Mux(raw.rank == 5, corner >> 4, corner >> 7)
            return (raw.rank > 3) & (above != 0) & (above != -1)

        lowers, uppers = ([raw[f"{name}{k}"] for k in _SPATIAL] for name in ("lower", "upper"))
        sizes = [Mux(interleaved, raw[f"size{k}"], raw[f"size{k + 1}"]) for k in _SPATIAL]  # minus one
        empty = [lowers[k] > sizes[k] + uppers[k] for k in _SPATIAL]

        channel_bytes = Signal(12)
        m.d.comb += channel_bytes.eq((raw.channels + 1) << self._element_log2())
        slice_bytes = Mux(raw.interleave == Interleave.B32, 32, 16)
        ragged = Mux(interleaved, channel_bytes != slice_bytes, channel_bytes[:4].any() & ~raw.unaligned)
        return [
            *((Error.CORNER, "lower", exists[k] & oversized(lowers[k])) for k in _SPATIAL),
            *((Error.CORNER, "upper", exists[k] & (oversized(uppers[k]) | empty[k])) for k in _SPATIAL),
            (Error.CHANNELS, "channels", im2col & ragged),
        ]

    def _element_bytes(self):
        """Bytes of an element, as a Value of four bits."""
        return Cat(self._of_bytes(1 << n) for n in range(4))

    def _element_log2(self):
        return Cat(self._of_bytes(2) | self._of_bytes(8), self._of_bytes(4) | self._of_bytes(8))

    def _of_bytes(self, count):
        """The element has ``count`` bytes."""
        return Cat(self.raw.element == element for element in Element if element.bytes == count).any()
