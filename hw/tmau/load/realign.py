"""Realigner: brings each step together with its bus word, rotated and swizzled to where it lands."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec import CHUNK_BYTES, LINE_BYTES

from ...lib.choice import chosen
from ...lib.rotate import rotate_bytes
from ...smem.swizzle import chunk_flips
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

    Members
    -------
    steps : In(stream of StepLayout)
    words : In(stream of WordLayout)
        From the bus, in the order in which the steps pull them.
    loop : In(stream of WordLayout)
        From the store path, for the steps of transfers with ``loop``.
    aligned : Out(stream of AlignedLayout)
    stall_data : Out(1)
        In this cycle a step waits for its word.
    """

    def __init__(self, params):
        self._params = params
        self.data = Signal(params.bus_width)  # the word of the step
        self.taken = Signal(params.bus_width)  # the word that was taken last
        self.given = Signal(StepLayout(params))  # the step at the input
        self.step = Signal(StepLayout(params))  # the one that is rotated
        distance = params.bus_log2 - _CHUNK_LOG2
        # For each chunk of the word, which one of those whose bytes are turned it is; of the upper half all bits are
        # inverted, so that no tool makes one register of two, and shares halves of the choices.
        self.sources = Signal(data.ArrayLayout(distance, 1 << distance))
        self.erring = Signal()  # a word of the transfer that the next piece belongs to came with an error
        self.erred_at = Signal(params.addr_width)  # that word
        super().__init__(
            {
                "steps": In(stream.Signature(StepLayout(params))),
                "words": In(stream.Signature(WordLayout(params))),
                "loop": In(stream.Signature(WordLayout(params))),
                "aligned": Out(stream.Signature(AlignedLayout(params))),
                "stall_data": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        given, step, aligned = self.given, self.step, self.aligned.payload
        loop = given.context.loop
        m.d.comb += given.eq(self.steps.p)
        m.d.comb += [member.eq(0) for member in never_set(self._params, given.context)]

        pulls = self.steps.valid & given.pull
        goes = Signal()  # a step may go on, if it has its word
        word, error = Signal(WordLayout(self._params)), Signal()
        m.d.comb += [
            word.eq(Mux(loop, self.loop.payload, self.words.payload)),
            self.stall_data.eq(pulls & ~Mux(loop, self.loop.valid, self.words.valid)),
            self.steps.ready.eq(goes & ~self.stall_data),
            self.words.ready.eq(goes & pulls & ~loop),
            self.loop.ready.eq(goes & pulls & loop),
            error.eq(self.erring | (given.pull & word.error)),
        ]
        with m.If(self.steps.valid & self.steps.ready):
            m.d.sync += self.erring.eq(error & ~(given.piece.last & (~given.context.quiet | given.context.stage)))
        if self._params.registers_words:
            self._take(m, word, error, goes, pulls)
        else:
            self._pass(m, word, error, goes, pulls)

        complement = step.complement if self._params.four_inputs else None
        turned = rotate_bytes(m, self.data, step.rotate[:_CHUNK_LOG2], left=True, complement=complement)
        m.d.comb += [
            aligned.piece.eq(step.piece),
            aligned.context.eq(step.context),
            aligned.word.eq(self._placed(turned)),
            aligned.remains.eq(step.context.stage & step.piece.last & self._remains(step.piece)),
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
        return m

    def _pass(self, m, word, error, goes, pulls):
        """The step and its word as they come."""
        given, aligned = self.given, self.aligned
        m.d.comb += [
            goes.eq(aligned.ready),
            aligned.valid.eq(self.steps.valid & ~self.stall_data),
            self.step.eq(given),
            self.sources.eq(self._sources(given)),
            self.data.eq(Mux(given.pull, word.data, self.taken)),
            aligned.p.error.eq(error),
            aligned.p.address.eq(Mux(self.erring | ~given.pull, self.erred_at, word.address)),
        ]
        # A step that pulls needs neither, so what they hold while it waits does not matter: they do not wait for it.
        with m.If(pulls):
            m.d.sync += self.taken.eq(self.data)  # which is the word: one table chooses among all three
            with m.If(~self.erring):
                m.d.sync += self.erred_at.eq(word.address)

    def _take(self, m, word, error, goes, pulls):
        """The step and its word in registers."""
        aligned = self.aligned
        m.d.comb += [
            goes.eq(~aligned.valid | aligned.ready),
            self.data.eq(self.taken),
            aligned.p.address.eq(self.erred_at),
        ]
        with m.If(goes):
            m.d.sync += [
                aligned.valid.eq(self.steps.valid & ~self.stall_data),
                self.step.eq(self.given),
                self.sources.eq(self._sources(self.given)),
                aligned.p.error.eq(error),
            ]
        with m.If(goes & pulls):
            m.d.sync += self.taken.eq(word.data)
            with m.If(~self.erring):
                m.d.sync += self.erred_at.eq(word.address)

    def _remains(self, piece):
        """Whether some of the piece lies in another segment than its first byte, which is not whole."""
        bus_log2 = self._params.bus_log2
        return (piece.first[bus_log2:] != piece.end[bus_log2:]) & piece.end[:bus_log2].any()

    def _sources(self, step):
        """Where the chunks of a word come from: rotated as the step says, and then swizzled as its line is."""
        distance = step.rotate[_CHUNK_LOG2:]
        flips = chunk_flips(step.context.swizzle, step.piece.line)[: len(distance)]
        count = 1 << len(distance)
        sources = [((place ^ flips) - distance)[: len(distance)] for place in range(count)]
        return Cat(*sources[: count // 2], *(~source for source in sources[count // 2 :]))

    def _placed(self, turned):
        """Chunks of a word at their places."""
        if not len(self.sources[0]):
            return turned
        count = len(self.sources)
        chunks = {k: turned.word_select(k, 8 * CHUNK_BYTES) for k in range(count)}
        sources = [~source if place >= count // 2 else source for place, source in enumerate(self.sources)]
        return Cat(chosen(source, chunks) for source in sources)
