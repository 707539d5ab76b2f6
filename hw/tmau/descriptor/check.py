"""The descriptor check: 128 bytes from memory become the constants that every command on them needs, or a refusal."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec import DESCRIPTOR

from ...bus.axi4_port import DescriptorWordLayout
from ...lib.divide import CeilDivider
from ...lib.formats import packed_layout
from .derive import Derivation
from .layouts import CheckedLayout, FaultLayout
from .rules import DescriptorRules

__all__ = ["DescriptorCheck"]


class DescriptorCheck(wiring.Component):
    """Collects the words of a descriptor, checks every rule of docs/tmau.md, "Tensor descriptor", and derives
    :class:`CheckedLayout`.

    Latency: ``done`` comes three cycles after the last word, whatever the bus width. One descriptor at a time: words of
    the next one may come from the cycle after ``done`` on.

    Members
    -------
    words : In(stream of DescriptorWordLayout)
        Always ready.
    done : Out(1)
        Strobe: ``checked`` and ``fault`` are valid in this cycle, and only in this cycle.
    checked : Out(CheckedLayout)
        Meaningful if ``fault.code`` is NONE.
    fault : Out(FaultLayout)
        As in ``DescriptorRules``.
    """

    def __init__(self, params):
        self.params = params
        super().__init__(
            {
                "words": In(stream.Signature(DescriptorWordLayout(params.bus_bytes))),
                "done": Out(1),
                "checked": Out(CheckedLayout(params)),
                "fault": Out(FaultLayout()),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.rules = rules = DescriptorRules()
        m.submodules.derivation = derivation = Derivation(self.params)
        raw = Signal(packed_layout(DESCRIPTOR))
        self._collect(m, raw, rules)
        self._divide(m, derivation.quotients)

        # The three cycles after the last word. In the first the word is complete, in the last the results are out.
        phase = Signal(3)
        start = self.words.valid & self.words.p.last
        m.d.sync += phase.eq(Cat(start, phase[:2]))
        m.d.comb += [
            self.done.eq(phase[2]),
            rules.raw.eq(raw),
            derivation.raw.eq(raw),
            derivation.step.eq(Cat(start, phase)),
            self.checked.eq(derivation.checked),
            self.fault.eq(rules.fault),
        ]
        return m

    def _collect(self, m, raw, rules):
        """Keeps the fields of the passing words, and what else is wrong with them."""
        bus_width = self.params.bus_width
        word = self.words.p.data
        self._beat = beat = Signal(range(DESCRIPTOR.bits // bus_width))
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

    def _divide(self, m, quotients):
        """Box over traversal. They lie in one bus word of every width; dividing as it passes saves a cycle."""
        bus_width = self.params.bus_width
        word = self.words.p.data
        index = DESCRIPTOR["box"].lsb // bus_width
        with m.If(self.words.valid & (self._beat == index)):
            for d in range(5):
                m.submodules[f"divide{d}"] = divide = CeilDivider()
                box, traversal = (DESCRIPTOR[name].lsbs[d] - index * bus_width for name in ("box", "traversal"))
                m.d.comb += [divide.n.eq(word[box:][:8] + 1), divide.t.eq(word[traversal:][:3])]
                m.d.sync += quotients[d].eq(divide.o)
