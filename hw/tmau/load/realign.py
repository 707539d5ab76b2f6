"""Realigner: brings each step together with its bus word, rotated and swizzled to where it lands."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.spec import CHUNK_BYTES, LINE_BYTES

from ...lib.logic import chosen, rotate_bytes
from ...smem.layouts import chunk_flips
from ..layouts import WordLayout
from .fill import chunks_below, find_tf32
from .layouts import BOUNDS, AlignedLayout, StepLayout, never_set

__all__ = ["Realigner"]

_CHUNK_LOG2 = CHUNK_BYTES.bit_length() - 1


class Realigner(wiring.Component):
    """Takes a bus word for each step that pulls one, rotates it by bytes and swizzles it.

    A step that pulls none gets the word that was taken last, rotated and swizzled for the step all the same. Rotation
    by whole chunks and swizzle are one choice of a chunk for each place. Where the chunks lie that the piece begins and
    ends in is found out here, for WordPlacer decides on each byte of the line; so is how it rounds.

    Errors of words are collected, with the address of the first. They end with the transfer; those of a quiet transfer
    go on to the one behind it, which belongs to the same command. Errors of a transfer with ``stage`` leave with its
    lines, and so they end with it too.

    Latency 0: the piece is there when both step and word are. With ``params.registers_words`` 1: both lie in registers,
    where the word that was taken last is already. Throughput: one step a cycle.
    """

    def __init__(self, params):
        self._params = params
        self.data = Signal(params.bus_width)  # the word of the step
        self.taken = Signal(params.bus_width)  # the word that was taken last
        self.erring = Signal()  # a word of the transfer that the next piece belongs to came with an error
        self.erred_at = Signal(params.addr_width)  # that word
        super().__init__(
            {
                "steps": In(stream.Signature(StepLayout(params))),
                # From the bus, in the order in which the steps pull them.
                "words": In(stream.Signature(WordLayout(params))),
                # From the store path, for the steps of transfers with ``loop``.
                "loop": In(stream.Signature(WordLayout(params))),
                "aligned": Out(stream.Signature(AlignedLayout(params))),
                # In this cycle a step waits for its word.
                "stall_data": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        registers, aligned = self._params.registers_words, self.aligned.payload
        given = self._given(m)
        if registers:
            # The step that is rotated, and of the one at the input: it may go on; it has its word; its error.
            step, goes, valid, error = Signal(StepLayout(self._params)), Signal(), Signal(), Signal()
        else:
            step, goes, valid, error = given, self.aligned.ready, self.aligned.valid, aligned.error
        loop = given.context.loop

        pulls = self.steps.valid & given.pull
        word = Signal(WordLayout(self._params))
        m.d.comb += [
            word.eq(Mux(loop, self.loop.payload, self.words.payload)),
            self.stall_data.eq(pulls & ~Mux(loop, self.loop.valid, self.words.valid)),
            valid.eq(self.steps.valid & ~self.stall_data),
            self.steps.ready.eq(goes & ~self.stall_data),
            self.words.ready.eq(goes & pulls & ~loop),
            self.loop.ready.eq(goes & pulls & loop),
        ]

        m.d.comb += self.data.eq(self.taken if registers else Mux(given.pull, word.data, self.taken))
        complement = step.complement if self._params.four_inputs else None
        turned = rotate_bytes(m, self.data, step.rotate[:_CHUNK_LOG2], left=True, complement=complement)
        sources = self._sources(given)
        if registers:
            sources = self._kept(m, goes, sources)
        m.d.comb += [
            aligned.piece.eq(step.piece),
            aligned.context.eq(step.context),
            aligned.word.eq(self._placed(turned, sources)),
            aligned.remains.eq(step.context.stage & step.piece.last & self._remains(step.piece)),
            error.eq(self.erring | (given.pull & word.error)),
            aligned.address.eq(
                self.erred_at if registers else Mux(self.erring | ~given.pull, self.erred_at, word.address)
            ),
        ]
        for lane, rounding in enumerate(aligned.roundings):
            m.d.comb += Cat(rounding.nan, rounding.up).eq(
                Cat(find_tf32(aligned.word.word_select(lane, 32), step.context.tf32))
            )
        flips = chunk_flips(step.context.swizzle, step.piece.line)
        for name in BOUNDS:
            bound, chunks = step.piece[name], aligned.chunks[name]
            limit = Mux(bound[7], LINE_BYTES, bound) if len(bound) > 7 else bound
            m.d.comb += Cat(chunks.whole, chunks.partly).eq(Cat(*chunks_below(limit, flips)))
        with m.If(self.steps.valid & self.steps.ready):
            m.d.sync += self.erring.eq(error & ~(given.piece.last & (~given.context.quiet | given.context.stage)))
        taken, takes = self.data, pulls
        if registers:
            m.d.comb += goes.eq(~self.aligned.valid | self.aligned.ready)
            with m.If(goes):
                m.d.sync += [self.aligned.valid.eq(valid), step.eq(given), aligned.error.eq(error)]
            taken, takes = word.data, goes & pulls
        # A step that pulls needs neither, so what they hold while it waits does not matter: they do not wait for it.
        with m.If(takes):
            m.d.sync += self.taken.eq(taken)  # which is the word: one table chooses among all three
            with m.If(~self.erring):
                m.d.sync += self.erred_at.eq(word.address)
        return m

    def _given(self, m):
        """The step at the input, whose context has nothing that the hardware lacks."""
        if not never_set(self._params, self.steps.payload.context):
            return self.steps.payload
        given = Signal(StepLayout(self._params))
        m.d.comb += given.eq(self.steps.payload)
        m.d.comb += [member.eq(0) for member in never_set(self._params, given.context)]
        return given

    def _remains(self, piece):
        """Whether some of the piece lies in another segment than its first byte, which is not whole."""
        bus_log2 = self._params.bus_log2
        return (piece.first[bus_log2:] != piece.end[bus_log2:]) & piece.end[:bus_log2].any()

    def _sources(self, step):
        """For each chunk of the word where it comes from: rotated as the step says, then swizzled as its line is."""
        distance = step.rotate[_CHUNK_LOG2:]
        flips = chunk_flips(step.context.swizzle, step.piece.line)[: len(distance)]
        return [((place ^ flips) - distance)[: len(distance)] for place in range(1 << len(distance))]

    def _kept(self, m, goes, sources):
        """The same in registers. Of the upper half all bits are inverted there, so that no tool makes one register of
        two, and shares halves of the choices.
        """
        kept = [Signal(len(source), name=f"source{place}") for place, source in enumerate(sources)]
        inverts = [place >= len(sources) // 2 for place in range(len(sources))]
        with m.If(goes):
            m.d.sync += [r.eq(~source if i else source) for r, source, i in zip(kept, sources, inverts, strict=True)]
        return [~register if i else register for register, i in zip(kept, inverts, strict=True)]

    def _placed(self, turned, sources):
        """Chunks of a word at their places."""
        if len(sources) == 1:
            return turned
        chunks = {k: turned.word_select(k, 8 * CHUNK_BYTES) for k in range(len(sources))}
        return Cat(chosen(source, chunks) for source in sources)
