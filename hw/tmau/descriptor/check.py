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
from .layouts import CheckedLayout, FaultLayout
from .rules import DescriptorRules

__all__ = ["DescriptorCheck"]


class DescriptorCheck(wiring.Component):
    """Collects the words of a descriptor, checks every rule of docs/tmau.md, "Tensor descriptor", and derives
    :class:`CheckedLayout`, one dimension a cycle.

    Latency: ``done`` comes 18 cycles after the last word, whatever the bus width. One descriptor at a time: words of
    the next one may come from the cycle after ``done`` on.

    Members
    -------
    words : In(stream of DescriptorWordLayout)
        Always ready.
    done : Out(1)
        Strobe: ``fault`` and what ``checked`` has without a strobe of its own are valid in this cycle.
    dimension_stb, row_stb : Out(5)
        Strobes of what ``checked`` lists by dimensions: see ``Derivation``. They come before ``done``.
    checked : Out(CheckedLayout)
        Meaningful if ``fault.code`` is NONE at the end.
    fault : Out(FaultLayout)
        As in ``DescriptorRules``.
    """

    def __init__(self, params):
        self.params = params
        super().__init__(
            {
                "words": In(stream.Signature(DescriptorWordLayout(params.bus_bytes))),
                "done": Out(1),
                "dimension_stb": Out(5),
                "row_stb": Out(5),
                "checked": Out(CheckedLayout(params)),
                "fault": Out(FaultLayout()),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.dimensions = dimensions = DimensionReader()
        m.submodules.rules = rules = DescriptorRules()
        m.submodules.derivation = derivation = Derivation(self.params)
        m.submodules.extent = extent = Extent()
        raw = Signal(packed_layout(DESCRIPTOR))
        self._collect(m, raw, rules)
        seen = dimensions.dimension
        # The sum of the extent is the last to be known.
        ending = Signal(2)
        m.d.sync += ending.eq(Cat(seen.passes[2] & seen.at[4], ending[0]))
        m.d.comb += [
            *(block.raw.eq(raw) for block in (dimensions, rules, derivation)),
            *(block.dimension.eq(seen) for block in (rules, derivation, extent)),
            *(block.unit_log2.eq(derivation.unit_log2) for block in (dimensions, extent)),
            dimensions.start.eq(self.words.valid & self.words.p.last),
            extent.address.eq(raw.address),
            self.done.eq(ending[1]),
            self.dimension_stb.eq(derivation.dimension_stb),
            self.row_stb.eq(derivation.row_stb),
            self.checked.eq(derivation.checked),
            self.checked.last.eq(extent.last),
            self.checked.beyond.eq(extent.last[self.params.addr_width :].any()),
            self.fault.eq(rules.fault),
        ]
        return m

    def _collect(self, m, raw, rules):
        """Keeps the fields of the passing words, and what else is wrong with them."""
        bus_width = self.params.bus_width
        word = self.words.p.data
        beat = Signal(range(DESCRIPTOR.bits // bus_width))
        reserved, read_error = Signal(), Signal()
        m.d.comb += [self.words.ready.eq(1), rules.reserved.eq(reserved), rules.read_error.eq(read_error)]
        with m.If(self.words.valid):
            m.d.sync += beat.eq(Mux(self.words.p.last, 0, beat + 1))
            m.d.sync += read_error.eq((read_error & (beat != 0)) | self.words.p.error)
            with m.Switch(beat):
                for index in range(DESCRIPTOR.bits // bus_width):
                    with m.Case(index):
                        m.d.sync += raw.as_value()[index * bus_width :][:bus_width].eq(word)
                        # Reserved bits are looked at as they pass, so that they need no register.
                        mask = DESCRIPTOR.reserved_mask >> index * bus_width & (1 << bus_width) - 1
                        m.d.sync += reserved.eq((reserved if index else 0) | (word & mask).any())
