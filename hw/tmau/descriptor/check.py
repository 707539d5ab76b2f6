"""The descriptor check: 128 bytes from memory become the constants that every command on them needs, or a refusal."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec import DESCRIPTOR

from ...bus.reads import DescriptorWordLayout
from ...lib.formats import packed_layout
from .derive import Derivation
from .dimensions import DimensionReader
from .extent import Extent
from .layouts import AskedLayout, CheckedLayout, DerivedLayout, FaultLayout
from .rules import DescriptorRules

__all__ = ["DescriptorCheck"]

#: Fields of the descriptor that nothing but the feature needs. The first one asks for it.
_NEEDED_BY = {
    "im2col": ("mode", "channels", "pixels", "lower", "upper"),
    "interleave": ("interleave",),
    "swizzle": ("swizzle",),
    "unaligned": ("unaligned",),
    "gather": ("gather0",),
}


class DescriptorCheck(wiring.Component):
    """Collects the words of a descriptor, checks every rule of docs/tmau.md, "Tensor descriptor", and derives
    :class:`CheckedLayout`, one dimension a cycle.

    Fields of features that the hardware lacks are not kept, and so read as 0 everywhere behind: whatever a descriptor
    needs them for is then constant, and not built.

    Latency: ``done`` comes 19 cycles after the last word, whatever the bus width. One descriptor at a time: words of
    the next one may come from the cycle after ``done`` on.

    Members
    -------
    words : In(stream of DescriptorWordLayout)
        Always ready.
    done : Out(1)
        Strobe: ``fault`` and ``checked`` are valid in this cycle.
    lists : Out(DerivedLayout)
        Dimensions, which come one by one before.
    checked : Out(CheckedLayout)
        Meaningful, as dimensions are, if ``fault.code`` is NONE at the end.
    fault : Out(FaultLayout)
        As in ``DescriptorRules``.
    """

    def __init__(self, params):
        self.params = params
        super().__init__(
            {
                "words": In(stream.Signature(DescriptorWordLayout(params.bus_bytes))),
                "done": Out(1),
                "lists": Out(DerivedLayout(params)),
                "checked": Out(CheckedLayout(params)),
                "fault": Out(FaultLayout()),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.dimensions = dimensions = DimensionReader()
        m.submodules.rules = rules = DescriptorRules(self.params)
        m.submodules.derivation = derivation = Derivation(self.params)
        m.submodules.extent = extent = Extent()
        raw = Signal(packed_layout(DESCRIPTOR))
        self._collect(m, raw, rules)
        seen = dimensions.dimension
        # The sum of the extent is the last to be known, and which rule comes first is said a cycle later.
        ending = Signal(3)
        m.d.sync += [ending.eq(Cat(seen.passes[2] & seen.at[4], ending)), self.fault.eq(rules.fault)]
        m.d.comb += [
            *(block.raw.eq(raw) for block in (dimensions, rules, derivation)),
            *(block.dimension.eq(seen) for block in (rules, derivation, extent)),
            *(block.unit_log2.eq(derivation.unit_log2) for block in (dimensions, extent)),
            dimensions.start.eq(self.words.valid & self.words.p.last),
            extent.address.eq(raw.address),
            self.done.eq(ending[2]),
            self.lists.eq(derivation.lists),
            self.checked.eq(derivation.checked),
            self.checked.last.eq(extent.last),
            self.checked.beyond.eq(extent.last[self.params.addr_width :].any()),
        ]
        return m

    def _collect(self, m, raw, rules):
        """Keeps the fields of the passing words, and what else is wrong with them."""
        bus_width = self.params.bus_width
        word = self.words.p.data
        beat = Signal(range(DESCRIPTOR.bits // bus_width))
        reserved, read_error, asked = Signal(), Signal(), Signal(AskedLayout())
        m.d.comb += [
            self.words.ready.eq(1),
            rules.reserved.eq(reserved),
            rules.read_error.eq(read_error),
            rules.asked.eq(asked),
        ]
        asks, forgotten = self._missing()
        with m.If(self.words.valid):
            m.d.sync += beat.eq(Mux(self.words.p.last, 0, beat + 1))
            m.d.sync += read_error.eq((read_error & (beat != 0)) | self.words.p.error)
            with m.Switch(beat):
                for index in range(DESCRIPTOR.bits // bus_width):

                    def here(bits, first=index * bus_width):
                        return bits >> first & (1 << bus_width) - 1

                    with m.Case(index):
                        m.d.sync += raw.as_value()[index * bus_width :][:bus_width].eq(word & here(~forgotten))
                        # Bits that are not kept are looked at as they pass.
                        reserved_here = (word & here(DESCRIPTOR.reserved_mask)).any()
                        m.d.sync += reserved.eq((reserved if index else 0) | reserved_here)
                        m.d.sync += [asked[name].eq((word & here(mask)).any()) for name, mask in asks if here(mask)]

    def _missing(self):
        """Of the features that are missing: what asks for them, as names and masks, and a mask of what is not kept."""
        features = [feature for feature in _NEEDED_BY if not self.params.has(feature)]
        asks = [(_NEEDED_BY[feature][0], _mask(_NEEDED_BY[feature][0])) for feature in features]
        forgotten = sum(_mask(name) for feature in features for name in _NEEDED_BY[feature])
        if "gather" in features:
            # Without interleave, nothing steps in dimension 0, but an impossible step is refused all the same.
            first, others = _mask("traversal", 0), _mask("traversal") - _mask("traversal", 0)
            asks += [("traversal0", first), ("traversal", others)]
            forgotten += others if "im2col" in features else 0
        return asks, forgotten


def _mask(name, *elements):
    """The bits of a field of the descriptor, or of some of its elements."""
    field = DESCRIPTOR[name]
    return sum((1 << field.width) - 1 << lsb for k, lsb in enumerate(field.lsbs) if k in (elements or range(5)))
