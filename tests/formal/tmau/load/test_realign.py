"""Each step that pulls takes one word of its source; any byte lands where rotation and swizzle say; errors."""

import pytest
from amaranth import Module, Mux, Signal
from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Cover, Elaboratable

from tilewright.golden.spec import CHUNK_BYTES
from tilewright.hw.smem.swizzle import chunk_flips
from tilewright.hw.tmau.load.realign import Realigner
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.sim.formal import StreamRules, prove


class RealignerSpec(Elaboratable):
    """Follows any one byte of the bus word, and the errors up to the transfer that answers for them."""

    def __init__(self, bus_bytes):
        self.params = TMAU_PRESETS["unit"].replace(bus_bytes=bus_bytes)
        self.dut = Realigner(self.params)
        self.byte = AnyConst(self.params.bus_log2)

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        m.submodules.steps_rules = StreamRules(dut.steps, assume=True)
        m.submodules.words_rules = StreamRules(dut.words, assume=True)
        m.submodules.loop_rules = StreamRules(dut.loop, assume=True)
        m.submodules.aligned_rules = StreamRules(dut.aligned)

        step = dut.steps.payload
        word = Signal.like(dut.words.payload)
        m.d.comb += word.eq(Mux(step.context.loop, dut.loop.payload, dut.words.payload))
        taken = dut.steps.valid & dut.steps.ready
        for source, chosen in ((dut.words, ~step.context.loop), (dut.loop, step.context.loop)):
            m.d.comb += Assert((source.valid & source.ready) == (taken & step.pull & chosen))

        value, there = Signal(8), Signal()  # the byte of the word that was taken last, and whether there was one
        error, address = Signal(), Signal(self.params.addr_width)  # of the transfer so far
        context, aligned = step.context, dut.aligned.payload
        comes = Mux(step.pull, word.data.word_select(self.byte, 8), value)
        flips = chunk_flips(context.swizzle, step.piece.line)
        place = ((self.byte + step.rotate) ^ (flips * CHUNK_BYTES))[: len(self.byte)]
        wrong, first = error | (step.pull & word.error), Mux(error, address, word.address)
        with m.If(taken):
            m.d.sync += [
                there.eq(there | step.pull),
                value.eq(comes),
                error.eq(wrong & ~(step.piece.last & (context.stage | ~context.quiet))),
                address.eq(first),
            ]
        with m.If(dut.aligned.valid):
            m.d.comb += [
                Assert(~(there | step.pull) | (aligned.word.word_select(place, 8) == comes)),
                Assert(aligned.error == wrong),
                Assert(~wrong | (aligned.address == first)),
                Assert(aligned.piece.as_value() == step.piece.as_value()),
                Assert(aligned.context.as_value() == context.as_value()),
            ]
        m.d.comb += [
            Assert(taken == (dut.aligned.valid & dut.aligned.ready)),
            Assert(dut.stall_data == (dut.steps.valid & ~dut.aligned.valid)),
            Assert(~there | (dut.taken.word_select(self.byte, 8) == value)),
            Assert((dut.erring == error) & (~error | (dut.erred_at == address))),
            Cover(taken & error & ~step.pull & step.piece.last & context.quiet),
        ]
        return m


def ports(dut):
    sources = [port for source in (dut.steps, dut.words, dut.loop) for port in (source.valid, source.payload)]
    return [*sources, dut.aligned.ready]


# No induction over words of 64 bytes ends within minutes: they are looked at for so many cycles as a word that is
# taken, used again and replaced needs.
@pytest.mark.parametrize(
    ("bus_bytes", "mode", "depth"), [(16, "prove", 2), pytest.param(64, "bmc", 3, marks=pytest.mark.long)]
)
def test_words_and_errors(bus_bytes, mode, depth):
    spec = RealignerSpec(bus_bytes)
    prove(spec, ports(spec.dut), name=f"realigner_{bus_bytes}", mode=mode, depth=depth)


@pytest.mark.long
def test_realigner_spec_reaches_an_error_and_a_word_used_again():
    spec = RealignerSpec(16)
    prove(spec, ports(spec.dut), name="realigner_cover", mode="cover", depth=8)
