"""The check of a descriptor: its rules, and the words it is made of (docs/tmau.md, "Tensor descriptor")."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.spec import DESCRIPTOR, DESCRIPTOR_VERSION, Element, Error, Fill, Interleave, Mode, Swizzle

from ...bus.bursts import DescriptorWordLayout
from ...lib.layouts import packed_layout
from .derive import Derivation
from .dimensions import DimensionLayout, DimensionReader, Extent
from .layouts import AskedLayout, CheckedLayout, DerivedLayout, FaultLayout

__all__ = ["DescriptorCheck", "DescriptorRules"]


class DescriptorRules(wiring.Component):
    """Finds the first rule that a descriptor breaks, during the first pass of its dimensions."""

    # Constant until ``fault`` has been used.
    raw: In(packed_layout(DESCRIPTOR))
    dimension: In(DimensionLayout())
    # A reserved bit is set.
    reserved: In(1)
    # Missing features that the descriptor needs.
    asked: In(AskedLayout())
    # The bus answered with an error.
    read_error: In(1)
    # The broken rule with the lowest code, then the lowest field number; DESCRIPTOR_READ for a bus error; otherwise
    # NONE. Valid from three cycles after the last dimension of the first pass.
    fault: Out(FaultLayout())

    def __init__(self, params):
        self._params = params
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        interleaved, im2col = self.raw.interleave != Interleave.NONE, self.raw.mode == Mode.IM2COL
        # Bytes of a row, or in im2col mode, where boxes are ignored, of a pixel.
        row_bytes = Signal(12)
        m.d.comb += row_bytes.eq((Mux(im2col, self.raw.channels, self.raw.box0) + 1) << self._element_log2())
        rules = [
            *self._header_rules(interleaved | im2col),
            *self._tensor_rules(m, interleaved, im2col, row_bytes),
            *self._im2col_rules(m, interleaved, im2col, row_bytes),
        ]
        broken, chosen = Signal(len(rules)), Signal(len(rules))
        m.d.sync += broken.eq(Cat(condition for _, _, condition in rules))
        m.d.sync += chosen.eq(broken & -broken)  # the lowest one
        with m.Switch(chosen):
            for index, (code, field, _) in enumerate(rules):
                with m.Case(1 << index):
                    m.d.comb += [self.fault.code.eq(code), self.fault.field.eq(DESCRIPTOR.index(field))]
        return m

    def _in_any(self, m, condition):
        """Whether the condition holds in any dimension; valid after the first pass."""
        result = Signal()
        with m.If(self.dimension.passes[0]):
            m.d.sync += result.eq((result & ~self.dimension.at[0]) | condition)
        return result

    # Every rule is (code, field, whether it is broken), by code and then by field number.

    def _header_rules(self, restricted):
        raw = self.raw
        no_nan = raw.element < Element.F16
        return [
            (Error.DESCRIPTOR_READ, "version", self.read_error),
            (Error.VERSION, "version", raw.version != DESCRIPTOR_VERSION),
            (Error.RESERVED, "version", self.reserved),
            *((Error.UNSUPPORTED, field, condition) for field, condition in self._unsupported()),
            (Error.RANK, "rank", (raw.rank == 0) | (raw.rank > 5) | (restricted & (raw.rank < 3))),
            (Error.ELEMENT, "element", raw.element > max(Element)),
            (Error.INTERLEAVE, "interleave", raw.interleave > max(Interleave)),
            (Error.FILL, "fill", (raw.fill > max(Fill)) | ((raw.fill == Fill.NAN) & no_nan)),
        ]

    def _unsupported(self):
        """Fields that need missing features, in their order; traversals only in tile mode."""
        raw, asked = self.raw, self.asked
        tile = raw.mode == Mode.TILE
        steps = asked.traversal | (asked.traversal0 & (raw.interleave != Interleave.NONE))
        return [
            ("mode", asked.mode),
            *([] if self._params.has("tf32") else [("element", raw.element == Element.TF32)]),
            ("interleave", asked.interleave),
            ("swizzle", asked.swizzle),
            ("unaligned", asked.unaligned),
            ("gather0", asked.gather0 & tile),
            ("traversal", steps & tile),
        ]

    def _tensor_rules(self, m, interleaved, im2col, row_bytes):
        raw, dimension = self.raw, self.dimension
        # Address bits that must be zero.
        low_bits, span = Signal(5), Signal(8)
        m.d.comb += [
            low_bits.eq(Mux(raw.unaligned, self._element_bytes() - 1, Mux(raw.interleave == Interleave.B32, 31, 15))),
            span.eq(16 << raw.swizzle),
        ]
        too_long = (raw.swizzle != Swizzle.NONE) & ~interleaved & (row_bytes > span)
        wrong_span = (raw.interleave == Interleave.B32) & (raw.swizzle != Swizzle.B32)
        ragged = row_bytes[:4].any() & ~interleaved & ~im2col & ~raw.unaligned
        # Dimension 0 has no stride and is always used.
        misaligned = dimension.used & ~dimension.at[0] & (dimension.stride[:5] & low_bits).any()
        unused = ~dimension.used & ~dimension.at[0]
        return [
            (Error.ADDRESS, "address", (raw.address[:5] & low_bits).any()),
            (Error.STRIDE, "stride", self._in_any(m, misaligned)),
            (Error.BOX, "box", ragged),
            (Error.TRAVERSAL, "traversal", self._in_any(m, dimension.used & dimension.traversal[3])),
            (Error.SWIZZLE, "swizzle", too_long | wrong_span),
            *(
                (Error.UNUSED, field, self._in_any(m, unused & dimension[field].any()))
                for field in ("size", "box", "traversal", "stride")
            ),
        ]

    def _im2col_rules(self, m, interleaved, im2col, row_bytes):
        """Unused corners are 0, which breaks no rule."""
        raw, dimension = self.raw, self.dimension

        def oversized(corner):
            """The corner has more than 16, 8 or 5 bits, for one, two or three spatial dimensions."""
            above = Mux(raw.rank == 5, corner >> 4, corner >> 7)
            return (raw.rank > 3) & (above != 0) & (above != -1)

        empty = dimension.lower > dimension.size + dimension.upper  # the size is stored minus one
        slice_bytes = Mux(raw.interleave == Interleave.B32, 32, 16)
        ragged = Mux(interleaved, row_bytes != slice_bytes, row_bytes[:4].any() & ~raw.unaligned)
        return [
            (Error.CORNER, "lower", self._in_any(m, oversized(dimension.lower))),
            (Error.CORNER, "upper", self._in_any(m, oversized(dimension.upper) | empty)),
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


#: Fields that only a feature uses. A descriptor whose first one is not zero needs the feature.
_NEEDED_BY = {
    "im2col": ("mode", "channels", "pixels", "lower", "upper"),
    "interleave": ("interleave",),
    "swizzle": ("swizzle",),
    "unaligned": ("unaligned",),
    "gather": ("gather0",),
}


class DescriptorCheck(wiring.Component):
    """Collects the words of a descriptor, checks all its rules, and derives :class:`CheckedLayout`.

    Fields of missing features are not stored and read as 0, so that synthesis removes the logic that they control.

    Latency: ``done`` comes 19 cycles after the last word, for any bus width. One descriptor at a time: words of the
    next one may arrive from the cycle after ``done``.
    """

    def __init__(self, params):
        self._params = params
        super().__init__(
            {
                "words": In(stream.Signature(DescriptorWordLayout(params.bus_bytes))),  # Always ready.
                "done": Out(1),  # Strobe: ``fault`` and ``checked`` are valid in this cycle.
                "lists": Out(DerivedLayout(params)),  # Dimensions, one by one before ``done``.
                "checked": Out(CheckedLayout(params)),  # Defined, like the dimensions, if ``fault.code`` is NONE.
                "fault": Out(FaultLayout()),  # As in ``DescriptorRules``.
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.dimensions = dimensions = DimensionReader()
        m.submodules.rules = rules = DescriptorRules(self._params)
        m.submodules.derivation = derivation = Derivation(self._params)
        m.submodules.extent = extent = Extent()
        raw = Signal(packed_layout(DESCRIPTOR))
        self._collect(m, raw, rules)
        dimension = dimensions.dimension
        # The extent is known last; the first broken rule is registered.
        ending = Signal(3)
        m.d.sync += [ending.eq(Cat(dimension.passes[2] & dimension.at[4], ending)), self.fault.eq(rules.fault)]
        m.d.comb += [
            *(block.raw.eq(raw) for block in (dimensions, rules, derivation)),
            *(block.dimension.eq(dimension) for block in (rules, derivation, extent)),
            *(block.unit_log2.eq(derivation.unit_log2) for block in (dimensions, extent)),
            dimensions.start.eq(self.words.valid & self.words.payload.last),
            extent.address.eq(raw.address),
            self.done.eq(ending[2]),
            self.lists.eq(derivation.lists),
            self.checked.eq(derivation.checked),
            self.checked.last.eq(extent.last),
            self.checked.beyond.eq(extent.last[self._params.addr_width :].any()),
        ]
        return m

    def _collect(self, m, raw, rules):
        """Stores the fields of the words, and collects errors of the words themselves."""
        bus_width = self._params.bus_width
        word = self.words.payload.data
        beat = Signal(range(DESCRIPTOR.bits // bus_width))
        reserved, read_error, asked = Signal(), Signal(), Signal(AskedLayout())
        m.d.comb += [
            self.words.ready.eq(1),
            rules.reserved.eq(reserved),
            rules.read_error.eq(read_error),
            rules.asked.eq(asked),
        ]
        asks, dropped = self._missing()
        with m.If(self.words.valid):
            m.d.sync += beat.eq(Mux(self.words.payload.last, 0, beat + 1))
            m.d.sync += read_error.eq((read_error & (beat != 0)) | self.words.payload.error)
            with m.Switch(beat):
                for index in range(DESCRIPTOR.bits // bus_width):

                    def here(bits, first=index * bus_width):
                        return bits >> first & (1 << bus_width) - 1

                    with m.Case(index):
                        m.d.sync += raw.as_value()[index * bus_width :][:bus_width].eq(word & here(~dropped))
                        # Bits that are not stored are checked here.
                        reserved_here = (word & here(DESCRIPTOR.reserved_mask)).any()
                        m.d.sync += reserved.eq((reserved if index else 0) | reserved_here)
                        m.d.sync += [asked[name].eq((word & here(mask)).any()) for name, mask in asks if here(mask)]

    def _missing(self):
        """Masks of the fields that need missing features, by name, and a mask of the bits that are not stored."""
        features = [feature for feature in _NEEDED_BY if not self._params.has(feature)]
        asks = [(_NEEDED_BY[feature][0], _mask(_NEEDED_BY[feature][0])) for feature in features]
        dropped = sum(_mask(name) for feature in features for name in _NEEDED_BY[feature])
        if "gather" in features:
            # Without interleave dimension 0 has no steps, but an impossible step is still refused.
            first, others = _mask("traversal", 0), _mask("traversal") - _mask("traversal", 0)
            asks += [("traversal0", first), ("traversal", others)]
            dropped += others if "im2col" in features else 0
        return asks, dropped


def _mask(name, *elements):
    """Mask of a field of the descriptor, or of some of its elements."""
    field = DESCRIPTOR[name]
    return sum((1 << field.width) - 1 << lsb for k, lsb in enumerate(field.lsbs) if k in (elements or range(5)))
