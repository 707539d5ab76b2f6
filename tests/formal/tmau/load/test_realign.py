"""Each step that pulls takes one word of its source; any byte lands where rotation and swizzle say; errors."""

import pytest
from amaranth.hdl import Assert, Cat, Cover, Mux, Signal, Value
from amaranth.lib import stream

from support.formal import Spec
from tilewright.hw.smem.layouts import chunk_flips
from tilewright.hw.tmau.load.layouts import BOUNDS
from tilewright.hw.tmau.load.realign import Realigner
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.spec import CHUNK_BYTES
from tilewright.verify.formal import StreamRules, prove

CHUNK_LOG2 = CHUNK_BYTES.bit_length() - 1


class RealignerSpec(Spec):
    """Follows the bus word that was taken last, and the errors up to the transfer that answers for them."""

    given = "steps words loop"

    def __init__(self, bus_bytes):
        self.params = TMAU_PRESETS["unit"].replace(bus_bytes=bus_bytes)
        self.dut = Realigner(self.params)

    def specify(self, m, dut):
        m.submodules.aligned_rules = StreamRules(self.unplaced(m))

        step, context = dut.steps.payload, dut.steps.payload.context
        word = Signal.like(dut.words.payload)
        m.d.comb += word.eq(Mux(context.loop, dut.loop.payload, dut.words.payload))
        taken, stalls, arrived = dut.steps.valid & dut.steps.ready, Signal(), Signal()
        wants = dut.steps.valid & step.pull & ~arrived  # the step has no word yet
        m.d.comb += stalls.eq(wants & ~Mux(context.loop, dut.loop.valid, dut.words.valid))
        for source, chosen in ((dut.words, ~context.loop), (dut.loop, context.loop)):
            m.d.comb += Assert(source.ready == (wants & chosen))
        m.d.sync += arrived.eq(dut.steps.valid & step.pull & ~stalls & ~taken)

        value, there = Signal.like(word.data), Signal()  # the word that was taken last, and whether there was one
        error, address = Signal(), Signal(self.params.addr_width)  # of the transfer so far
        comes, wrong, first = Signal.like(value), Signal.like(error), Signal.like(address)
        m.d.comb += [
            comes.eq(Mux(wants, word.data, value)),
            wrong.eq(error | (wants & word.error)),
            first.eq(Mux(error, address, word.address)),
        ]
        with m.If(taken | (wants & ~stalls)):
            m.d.sync += [
                there.eq(there | step.pull),
                value.eq(comes),
                error.eq(wrong & ~(taken & step.piece.last & (context.stage | ~context.quiet))),
                address.eq(first),
            ]
        self.check(m, step, wrong, there | step.pull, comes, first)
        m.d.comb += [
            Assert(taken == (dut.aligned.valid & dut.aligned.ready)),
            Assert(dut.aligned.valid == (dut.steps.valid & ~stalls)),
            Assert(~there | wants | (dut.last_word == value)),
            Assert((dut.pulled == arrived) & (~arrived | (there & dut.steps.valid & step.pull))),
        ]
        m.d.comb += [
            Assert(dut.stall_data == stalls),
            Assert((dut.error == error) & (~error | (dut.error_address == address))),
            Cover(taken & error & ~step.pull & step.piece.last & context.quiet),
        ]

    def check(self, m, step, wrong, there, value, address):
        """What comes out, of a step, whether there is an error and at which address, and the word, if there is one."""
        dut, aligned = self.dut, self.dut.aligned.payload
        with m.If(dut.aligned.valid):
            m.d.comb += [
                Assert(~there | (dut.data == value)),
                Assert(aligned.error == wrong),
                Assert(~wrong | (aligned.address == address)),
                Assert(aligned.piece.as_value() == step.piece.as_value()),
                Assert(aligned.context.as_value() == step.context.as_value()),
                *(Assert(chunks_fit(step, aligned.chunks, name)) for name in BOUNDS),
                Assert(aligned.remains == remains(step.piece, step.context, self.params)),
            ]

    def unplaced(self, m):
        """What comes out, with the word before it is rotated: a solver does not see that equal words stay equal."""
        aligned = self.dut.aligned
        fields = [aligned.payload[name] for name, _ in aligned.payload.shape() if name != "word"]
        payload = Cat(self.dut.data, *(Value.cast(field) for field in fields))
        held = stream.Signature(len(payload)).create()
        m.d.comb += [held.valid.eq(aligned.valid), held.ready.eq(aligned.ready), held.payload.eq(payload)]
        return held


def chunks_fit(step, chunks, name):
    """Whether chunks of the line are told apart by a byte that bounds the piece, wherever the swizzle has them."""
    bound, flips = step.piece[name], chunk_flips(step.context.swizzle, step.piece.line)
    starts = [CHUNK_BYTES * (place ^ flips) for place in range(8)]
    whole = Cat(start + CHUNK_BYTES <= bound for start in starts)
    partly = Cat((start <= bound) & (bound < start + CHUNK_BYTES) for start in starts)
    return (chunks[name].whole == whole) & (chunks[name].partly == partly)


def remains(piece, context, params):
    """Whether a piece that ends a staged transfer has bytes in a second segment, which it does not fill."""
    begins, ends = piece.first >> params.bus_log2, piece.end >> params.bus_log2
    return context.stage & piece.last & (begins != ends) & (piece.end != ends << params.bus_log2)


class PlacedSpec(Spec):
    """Byte b of the word of a step at ``b + rotate``, and chunks then exchanged as the line's swizzle says.

    It is a function of word and step, which no register takes part in. In the first cycle they are whatever may come.
    """

    def __init__(self, bus_bytes):
        self.params = TMAU_PRESETS["unit"].replace(bus_bytes=bus_bytes)
        self.dut = Realigner(self.params)

    def specify(self, m, dut):
        step, word = dut.steps.payload, dut.data
        for bit, by in enumerate(step.rotate):
            before, word = word, Signal(len(word), name=f"turned{1 << bit}")
            m.d.comb += word.eq(Mux(by, before.rotate_left(8 << bit), before))
        flips = chunk_flips(step.context.swizzle, step.piece.line)
        for bit, flip in enumerate(flips[: self.params.bus_log2 - CHUNK_LOG2]):
            before, word = word, Signal(len(word), name=f"exchanged{1 << bit}")
            size = 8 * CHUNK_BYTES << bit
            parts = [before[low : low + size] for low in range(0, len(word), size)]
            m.d.comb += word.eq(Mux(flip, Cat(parts[number ^ 1] for number in range(len(parts))), before))
        m.d.comb += Assert(dut.aligned.payload.word == word)


@pytest.mark.parametrize("bus_bytes", [16, pytest.param(64, marks=pytest.mark.long)])
def test_words_and_errors(bus_bytes):
    prove(RealignerSpec(bus_bytes), name=f"realigner_{bus_bytes}", depth=2)


# No induction over rotated words of 64 bytes ends within minutes; nor is there any state that they depend on.
@pytest.mark.parametrize("bus_bytes", [16, pytest.param(64, marks=pytest.mark.long)])
def test_words_are_rotated_and_swizzled(bus_bytes):
    prove(PlacedSpec(bus_bytes), name=f"realigner_placed_{bus_bytes}", mode="bmc", depth=1)


@pytest.mark.long
def test_realigner_spec_reaches_an_error_and_a_word_used_again():
    prove(RealignerSpec(16), name="realigner_cover", mode="cover", depth=8)
