"""The descriptor check: 128 bytes from memory become the constants that every command on them needs, or a refusal."""

from amaranth import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec import DESCRIPTOR, DESCRIPTOR_VERSION, Element, Error, Fill, Interleave, Mode, Swizzle

from ..bus.axi4_port import DescriptorWordLayout
from ..lib.divide import CeilDivider
from ..lib.formats import packed_layout

__all__ = ["CheckedLayout", "DescriptorCheck", "FaultLayout"]

NAN_PATTERN = 0x7FF77FF7


class FaultLayout(data.StructLayout):
    """Why a command cannot run: an error record without the tag."""

    def __init__(self):
        super().__init__({"code": unsigned(8), "field": unsigned(8), "value": unsigned(64)})


class CheckedLayout(data.StructLayout):
    """A descriptor that has passed every rule, with what does not depend on coordinates worked out."""

    def __init__(self, params):
        length = params.smem.addr_width + 1
        super().__init__(
            {
                "address": unsigned(params.addr_width),
                "rank": unsigned(3),
                "element_log2": unsigned(2),  # log2 of the element's bytes
                "sizes": data.ArrayLayout(32, 5),  # as stored: elements minus one
                "strides": data.ArrayLayout(min(40, params.addr_width), 4),  # bytes, dimensions 1 to 4
                "counts": data.ArrayLayout(9, 5),  # elements a command takes: ceil(box / traversal); dimension 0: box
                "traversals": data.ArrayLayout(3, 4),  # as stored: step minus one, dimensions 1 to 4
                "run_bytes": data.ArrayLayout(
                    length, 5
                ),  # element bytes times counts[0] … counts[k]; [4] is the transfer
                "contiguous": data.ArrayLayout(
                    1, 4
                ),  # dimension k + 1 continues dimension k without a gap on either side
                "gapless": unsigned(1),  # rows adjoin in shared memory
                "pitch": unsigned(12),  # bytes from row to row in shared memory
                "footprint": unsigned(length),  # bytes from the first row to the end of the last one's pitch
                "too_large": unsigned(1),  # the footprint is larger than shared memory; other products may have wrapped
                "swizzle": unsigned(2),
                "fill": unsigned(32),  # pattern
                "tf32": unsigned(1),
            }
        )


class DescriptorCheck(wiring.Component):
    """Collects the words of a descriptor, checks every rule of tmau.md section 2, and derives :class:`CheckedLayout`.

    Latency: ``done`` comes three cycles after the last word, whatever the bus width. One descriptor at a time: words of
    the next one may come from the cycle after ``done`` on.

    Members
    -------
    words : stream of DescriptorWordLayout, in
        Always ready.
    done : 1, out
        Strobe: ``checked`` and ``fault`` are valid in this cycle, and only in this cycle.
    checked : CheckedLayout, out
        Meaningful if ``fault.code`` is NONE.
    fault : FaultLayout, out
        Lowest code, then lowest field number; the value of an array field is that of its first offending element. A bus
        error is DESCRIPTOR_READ with value 0: the address is known to who asked.
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
        raw = Signal(packed_layout(DESCRIPTOR))
        reserved, read_error = Signal(), Signal()
        counts = self._collect(m, raw, reserved, read_error)

        # The three cycles after the last word. In the first the word is complete, in the last the results are out.
        phase = Signal(3)
        start = self.words.valid & self.words.p.last
        m.d.sync += phase.eq(Cat(start, phase[:2]))
        m.d.comb += self.done.eq(phase[2])

        element_log2 = Signal(2)
        with m.Switch(raw.element):
            for element in Element:
                with m.Case(element):
                    m.d.comb += element_log2.eq(element.bytes.bit_length() - 1)
        row_bytes, span = Signal(12), Signal(8)
        m.d.comb += row_bytes.eq((raw.box0 + 1) << element_log2)
        m.d.comb += span.eq(Mux(raw.swizzle == Swizzle.NONE, 0, 16 << raw.swizzle))

        self._derive(m, raw, counts, element_log2, row_bytes, span, Cat(start, phase))
        self._judge(m, raw, element_log2, row_bytes, span, reserved, read_error)
        return m

    def _collect(self, m, raw, reserved, read_error):
        """Keeps the fields of the passing words; returns the counts of dimensions 1 to 4."""
        bus_width = self.params.bus_width
        word = self.words.p.data
        beat = Signal(range(DESCRIPTOR.bits // bus_width))
        counts = [Signal(9, name=f"count{d}") for d in range(1, 5)]

        m.d.comb += self.words.ready.eq(1)
        # Box and traversal lie in one bus word of every width. Dividing them as they pass saves the cycle that the
        # products below need.
        first_bit = DESCRIPTOR["box"].lsb // bus_width * bus_width
        for d, count in enumerate(counts, 1):
            m.submodules[f"divide{d}"] = divide = CeilDivider()
            box, traversal = DESCRIPTOR["box"].lsbs[d] - first_bit, DESCRIPTOR["traversal"].lsbs[d] - first_bit
            m.d.comb += [divide.n.eq(word[box:][:8] + 1), divide.t.eq(word[traversal:][:3])]
            with m.If(self.words.valid & (beat == first_bit // bus_width)):
                m.d.sync += count.eq(divide.o)

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
        return counts

    def _derive(self, m, raw, counts, element_log2, row_bytes, span, step):
        """Fills ``checked``. ``step`` is one-hot over the four cycles from the last word to ``done``."""
        checked = self.checked
        length = checked.footprint.shape().width
        pitch = Signal(12)
        m.d.comb += pitch.eq(Mux(row_bytes < span, span, row_bytes))

        # One multiplier each for run bytes and footprint: one dimension a cycle. The last product is not registered but
        # goes straight to the cache.
        run, footprint, overflow = Signal(length), Signal(length), Signal()
        count, next_run, next_footprint = Signal(9), Signal(length), Signal(length + 10)
        for d in range(4):
            with m.If(step[d]):
                m.d.comb += count.eq(counts[d])
        m.d.comb += next_run.eq(Mux(step[0], row_bytes, run) * count)
        m.d.comb += next_footprint.eq(Mux(step[0], pitch, footprint) * count)
        spilled = next_footprint[length:].any() | (overflow & ~step[0])
        m.d.sync += [run.eq(next_run), footprint.eq(next_footprint), overflow.eq(spilled)]
        run_bytes = [row_bytes, *(Signal(length, name=f"run_bytes{k}") for k in range(1, 4)), next_run]
        for d in range(3):
            with m.If(step[d]):
                m.d.sync += run_bytes[d + 1].eq(next_run)

        gapless = span <= row_bytes
        m.d.comb += [
            checked.address.eq(raw.address),
            checked.rank.eq(raw.rank),
            checked.element_log2.eq(element_log2),
            checked.counts[0].eq(raw.box0 + 1),
            checked.gapless.eq(gapless),
            checked.pitch.eq(pitch),
            checked.footprint.eq(next_footprint),
            checked.too_large.eq(spilled),
            checked.swizzle.eq(raw.swizzle),
            checked.tf32.eq(raw.element == Element.TF32),
        ]
        for d in range(5):
            m.d.comb += [checked.sizes[d].eq(raw[f"size{d}"]), checked.run_bytes[d].eq(run_bytes[d])]
        for k in range(4):
            stride = raw[f"stride{k}"]
            m.d.comb += [
                checked.strides[k].eq(stride),
                checked.counts[k + 1].eq(counts[k]),
                checked.traversals[k].eq(raw[f"traversal{k + 1}"]),
                checked.contiguous[k].eq(gapless & (stride == run_bytes[k]) & (raw[f"traversal{k + 1}"] == 0)),
            ]
        with m.Switch(raw.fill):
            with m.Case(Fill.NAN):
                m.d.comb += checked.fill.eq(NAN_PATTERN)
            with m.Case(Fill.CONSTANT):
                m.d.comb += checked.fill.eq(raw.fill_constant)

    def _judge(self, m, raw, element_log2, row_bytes, span, reserved, read_error):
        """Fills ``fault``: conditions one cycle after the last word, the first of them in the next, then its value."""
        rules = self._rules(raw, element_log2, row_bytes, span, reserved, read_error)
        broken, chosen = Signal(len(rules)), Signal(len(rules))
        m.d.sync += broken.eq(Cat(condition for _, _, condition, _ in rules))
        m.d.sync += chosen.eq(broken & -broken)  # the lowest one
        for index, (code, field, _, value) in enumerate(rules):
            with m.If(chosen[index]):
                m.d.comb += [
                    self.fault.code.eq(code),
                    self.fault.field.eq(DESCRIPTOR.index(field)),
                    self.fault.value.eq(value),
                ]

    @staticmethod
    def _rules(raw, element_log2, row_bytes, span, reserved, read_error):
        """Every rule as (code, field, broken, offending value), by code and then by field number."""
        dims = range(5)
        used = [raw.rank > d for d in dims]
        interleaved, im2col = raw.interleave != Interleave.NONE, raw.mode == Mode.IM2COL
        with_unaligned = (1 << element_log2) - 1
        with_interleave = Mux(raw.interleave == Interleave.B32, 31, 15)
        # Address bits that alignment wants zero.
        low_bits = Mux(raw.unaligned, with_unaligned, with_interleave)
        # The box means nothing to im2col.
        too_long = (span != 0) & ~interleaved & ~im2col & (row_bytes > span)
        wrong_span = (raw.interleave == Interleave.B32) & (raw.swizzle != Swizzle.B32)
        ragged = row_bytes[:4].any() & ~interleaved & ~im2col & ~raw.unaligned
        return [
            (Error.DESCRIPTOR_READ, "version", read_error, 0),
            (Error.VERSION, "version", raw.version != DESCRIPTOR_VERSION, raw.version),
            (Error.RESERVED, "version", reserved, 0),
            (Error.RANK, "rank", ~used[0] | (raw.rank > 5) | ((interleaved | im2col) & ~used[2]), raw.rank),
            (Error.ELEMENT, "element", raw.element > max(Element), raw.element),
            (Error.INTERLEAVE, "interleave", raw.interleave > max(Interleave), raw.interleave),
            (
                Error.FILL,
                "fill",
                (raw.fill > max(Fill)) | ((raw.fill == Fill.NAN) & (raw.element < Element.F16)),
                raw.fill,
            ),
            (Error.ADDRESS, "address", (raw.address[:5] & low_bits).any(), raw.address),
            *(
                (Error.STRIDE, "stride", used[d] & (raw[f"stride{d - 1}"][:5] & low_bits).any(), raw[f"stride{d - 1}"])
                for d in dims[1:]
            ),
            (Error.BOX, "box", ragged, raw.box0),
            *((Error.TRAVERSAL, "traversal", used[d] & raw[f"traversal{d}"][3], raw[f"traversal{d}"]) for d in dims),
            (Error.SWIZZLE, "swizzle", too_long | wrong_span, raw.swizzle),
            *(
                (Error.UNUSED, field, ~used[d] & raw[f"{field}{d - first}"].any(), raw[f"{field}{d - first}"])
                for field, first in (("size", 0), ("box", 0), ("traversal", 0), ("stride", 1))
                for d in dims[1:]
            ),
            (Error.UNSUPPORTED, "mode", im2col, raw.mode),
            (Error.UNSUPPORTED, "interleave", interleaved, raw.interleave),
            (Error.UNSUPPORTED, "unaligned", raw.unaligned, 1),
            (Error.UNSUPPORTED, "gather0", raw.gather0, 1),
        ]
