"""F9: chunks are permuted inside their line; F6: a completion comes once, never before its transfer's last write."""

from amaranth import Module, Mux, Signal
from amaranth.hdl import Assert, Cover, Elaboratable

from tilewright.golden.spec import Swizzle
from tilewright.hw.smem.swizzle import chunk_flips
from tilewright.hw.tmau.layouts import CompletionLayout
from tilewright.hw.tmau.load.layouts import ContextLayout
from tilewright.hw.tmau.load.swizzle import Swizzler
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.sim.formal import StreamRules, prove

PARAMS = TMAU_PRESETS["unit"]


class PermutationSpec(Elaboratable):
    """Any two places of any line."""

    def __init__(self):
        self.row, self.swizzle = Signal(PARAMS.smem.row_width), Signal(2)
        self.places = [Signal(3, name="place0"), Signal(3, name="place1")]

    def elaborate(self, platform):
        m = Module()
        flips = chunk_flips(self.swizzle, self.row)
        first, second = ((place ^ flips)[:3] for place in self.places)
        chunks = Mux(self.swizzle == Swizzle.NONE, 1, 1 << self.swizzle)  # 16-byte chunks of the span
        m.d.comb += [
            Assert((first == second) == (self.places[0] == self.places[1])),
            Assert(first == (self.places[0] ^ (self.row & (chunks - 1)))[:3]),
        ]
        return m


class SwizzlerSpec(Elaboratable):
    """Remembers what of the line that was accepted last is still to be handed on."""

    def __init__(self):
        self.dut = Swizzler(PARAMS)

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        m.submodules.writes_rules = StreamRules(dut.writes)
        m.submodules.completions_rules = StreamRules(dut.completions)

        completes, row = Signal(), Signal(PARAMS.smem.row_width)
        completion = Signal(CompletionLayout(PARAMS))
        context, write = Signal(ContextLayout(PARAMS)), dut.writes.payload
        to_write, to_complete = Signal(), Signal()
        written = dut.writes.valid & dut.writes.ready
        with m.If(written):
            m.d.sync += to_write.eq(0)
        with m.If(dut.completions.valid & dut.completions.ready):
            m.d.sync += to_complete.eq(0)
        with m.If(dut.lines.valid & dut.lines.ready):
            arriving = dut.lines.payload
            ends = arriving.last & ~arriving.context.quiet
            m.d.sync += context.eq(arriving.context)
            m.d.sync += [to_write.eq(1), to_complete.eq(ends), completes.eq(ends), row.eq(arriving.line.row)]
            m.d.sync += [completion[name].eq(arriving.context[name]) for name in ("tag", "signal", "barrier", "bytes")]
            m.d.sync += [
                completion.error.eq(arriving.error),
                completion.write.eq(0),
                completion.address.eq(arriving.address),
            ]
            m.d.comb += Assert(~to_write | written, "a line is accepted only when the one before is written")
            m.d.comb += Assert(~to_complete | (dut.completions.valid & dut.completions.ready))

        m.d.comb += [
            Assert(dut.valid == (to_write | to_complete)),
            Assert(dut.written == (to_complete & ~to_write)),
            Assert(~dut.valid | (dut.completes == completes)),
            Assert(~to_write | (to_complete == completes)),
            Assert(~to_complete | completes),
        ]

        m.d.comb += Assert(dut.writes.valid == to_write)
        m.d.comb += Assert(dut.completions.valid == (to_complete & (~to_write | dut.writes.ready)))
        with m.If(to_write):
            m.d.comb += Assert(dut.writes.payload.line.row == row)
            m.d.comb += Assert((write.stage == context.stage) & (write.error == completion.error))
            m.d.comb += Assert((write.reduction == context.reduction) & (write.element == context.element))
        with m.If(to_complete):
            m.d.comb += Assert(dut.completions.payload.as_value() == completion.as_value())
        held = Signal()
        with m.If(dut.completions.valid & ~dut.completions.ready & ~to_write):
            m.d.sync += held.eq(1)
        m.d.comb += Cover(held & to_write & completes)
        return m


def ports(dut):
    return [dut.lines.valid, dut.lines.payload, dut.writes.ready, dut.completions.ready]


def test_swizzle_is_a_permutation():
    spec = PermutationSpec()
    prove(spec, [spec.row, spec.swizzle, *spec.places], name="swizzle_permutation", depth=1, proves="F9")


def test_lines_and_completions():
    spec = SwizzlerSpec()
    prove(spec, ports(spec.dut), name="swizzler", depth=2, proves="F6")


def test_swizzler_spec_reaches_a_held_completion():
    spec = SwizzlerSpec()
    prove(spec, ports(spec.dut), name="swizzler_cover", mode="cover", depth=8)
