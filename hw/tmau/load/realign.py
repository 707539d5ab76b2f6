"""The realigner: combines each step with its bus word, rotated and swizzled to its destination."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.spec import CHUNK_BYTES, LINE_BYTES

from ...lib.logic import masked_choice, rotate_bytes
from ...smem.layouts import CHUNK_BITS, chunk_flips
from ..layouts import WordLayout
from .fill import chunks_below, find_tf32
from .layouts import BOUNDS, AlignedLayout, StepLayout, never_set

__all__ = ["Realigner"]

_CHUNK_LOG2 = CHUNK_BYTES.bit_length() - 1


class Realigner(wiring.Component):
    """Combines each step with its bus word, which it rotates by bytes and swizzles.

    A step that pulls no word uses the previous one, rotated and swizzled again. The rotation by whole chunks and the
    swizzle are one multiplexer. The realigner also computes, for WordPlacer, which chunks of the line the bounds of the
    piece lie in, and how the word is rounded.

    Errors of words accumulate, with the address of the first one, until the transfer ends. Errors of a quiet transfer
    go on to the next transfer, which belongs to the same command. Errors of a transfer with ``stage`` leave with its
    lines, and so end with it, too.

    A word is accepted as soon as its step is valid, and waits in the register of the previous word if the piece cannot
    leave. So ``ready`` of both sources of words is one LUT after a register, and independent of ``aligned.ready``.

    Latency 0: the piece is valid when both step and word are. Throughput: one step a cycle.
    """

    def __init__(self, params):
        self._params = params
        self.data = Signal(params.bus_width)  # the word of the step
        self.last_word = Signal(params.bus_width)  # the word that was pulled last
        self.pulled = Signal()  # it is the word of the step at the input
        self.error = Signal()  # a word of the current transfer had an error
        self.error_address = Signal(params.addr_width)  # of the first such word
        super().__init__(
            {
                "steps": In(stream.Signature(StepLayout(params))),
                "words": In(stream.Signature(WordLayout(params))),  # From the bus, in the order of the steps.
                "loop": In(stream.Signature(WordLayout(params))),  # From the store path, for transfers with ``loop``.
                "aligned": Out(stream.Signature(AlignedLayout(params))),
                "stall_data": Out(1),  # A step waits for its word in this cycle.
            }
        )

    def elaborate(self, platform):
        m = Module()
        aligned, word, step = self.aligned.payload, Signal(WordLayout(self._params)), self._step(m)
        piece, context, loop = step.piece, step.context, step.context.loop
        pulls, leaves = self.steps.valid & step.pull & ~self.pulled, self.steps.valid & self.steps.ready
        m.d.comb += [
            word.eq(Mux(loop, self.loop.payload, self.words.payload)),
            self.stall_data.eq(pulls & ~Mux(loop, self.loop.valid, self.words.valid)),
            self.aligned.valid.eq(self.steps.valid & ~self.stall_data),
            self.steps.ready.eq(self.aligned.ready & ~self.stall_data),
            self.words.ready.eq(pulls & ~loop),
            self.loop.ready.eq(pulls & loop),
            self.data.eq(Mux(pulls, word.data, self.last_word)),
        ]

        turned = rotate_bytes(m, self.data, step.rotate[:_CHUNK_LOG2], left=True)
        flips = chunk_flips(context.swizzle, piece.line)
        m.d.comb += [
            aligned.piece.eq(piece),
            aligned.context.eq(context),
            aligned.word.eq(self._permuted(m, turned, step.rotate[_CHUNK_LOG2:], flips)),
            aligned.remains.eq(context.stage & piece.last & self._remains(piece)),
            aligned.error.eq(self.error | (pulls & word.error)),
            aligned.address.eq(Mux(self.error | ~pulls, self.error_address, word.address)),
        ]
        for lane, rounding in enumerate(aligned.roundings):
            m.d.comb += Cat(rounding.nan, rounding.up).eq(
                Cat(find_tf32(aligned.word.word_select(lane, 32), context.tf32))
            )
        for name in BOUNDS:
            bound, chunks = piece[name], aligned.chunks[name]
            limit = Mux(bound[7], LINE_BYTES, bound) if len(bound) > 7 else bound
            m.d.comb += Cat(chunks.whole, chunks.partly).eq(Cat(*chunks_below(limit, flips)))
        with m.If(self.aligned.valid):
            ends = piece.last & (~context.quiet | context.stage)
            m.d.sync += [self.pulled.eq(step.pull & ~leaves), self.error.eq(aligned.error & ~(leaves & ends))]
        # While a step waits for its word these may hold anything, because it will use the word itself.
        with m.If(pulls):
            m.d.sync += self.last_word.eq(self.data)
            with m.If(~self.error):
                m.d.sync += self.error_address.eq(word.address)
        return m

    def _step(self, m):
        """The step at the input, with members of missing features tied to zero."""
        if not never_set(self._params, self.steps.payload.context):
            return self.steps.payload
        step = Signal(StepLayout(self._params))
        m.d.comb += step.eq(self.steps.payload)
        m.d.comb += [member.eq(0) for member in never_set(self._params, step.context)]
        return step

    def _remains(self, piece):
        """Whether the piece ends in a segment that it neither begins in nor fills."""
        bus_log2 = self._params.bus_log2
        return (piece.first[bus_log2:] != piece.end[bus_log2:]) & piece.end[:bus_log2].any()

    def _permuted(self, m, turned, distance, flips):
        """The chunks of a word rotated by ``distance`` and then swizzled; a bit is a single LUT6, as in a rotator."""
        count, flips = 1 << len(distance), flips[: len(distance)]
        if count == 1:
            return turned
        permuted, chunks = [], [turned.word_select(number, CHUNK_BITS) for number in range(count)]
        for place in range(count):
            source = Signal(len(distance), name=f"source{place}")
            m.d.comb += source.eq((place ^ flips) - distance)
            permuted.append(masked_choice(m, source, chunks, source.name))
        return Cat(permuted)
