"""Post-processing: significands are rounded to nearest even, for all numbers, and no transfer is lost."""

import pytest
from amaranth.hdl import Assert, Assume, Const, Cover, Signal

from support.formal import Spec, proved_and_covered
from tilewright.hw.conv.result.post import PostProcessor
from tilewright.hw.conv.result.rounding import PLACES, Significand
from tilewright.hw.lib.logic import delay
from tilewright.spec.conv import CONV_PRESETS, ConvOutput
from tilewright.verify.formal import prove, queue_invariants


class SignificandSpec(Spec):
    """One case for each length of the number, by shifts and remainders."""

    def __init__(self, width):
        self.dut = Significand(width)
        self._width = width

    def specify(self, m, dut):
        number = delay(m, dut.i, dut.LATENCY, name="number")
        known = delay(m, Const(1), dut.LATENCY, name="known")
        with m.If(known & (number == 0)):
            m.d.comb += Assert(dut.o == 0)
        for length in range(1, self._width + 1):
            cut = max(length - 24, 0)
            kept, rest = number >> cut, number[:cut] if cut else Const(0)
            up = (rest > (1 << cut >> 1)) | ((rest == (1 << cut >> 1)) & kept[0]) if cut else Const(0)
            wanted, places = Signal(25, name=f"wanted{length}"), Signal(PLACES, name=f"places{length}")
            m.d.comb += [wanted.eq((kept + up) << max(24 - length, 0)), places.eq(length - 24)]
            with m.If(known & number[length - 1] & ~number[length:].any()):
                m.d.comb += Assert(dut.o[-1])
                with m.If(wanted[24]):
                    m.d.comb += Assert((dut.o == wanted >> 1) & (dut.places == places + 1))
                with m.Else():
                    m.d.comb += Assert((dut.o == wanted) & (dut.places == places))


def test_of_requantisation():
    spec = SignificandSpec(32)
    prove(spec, [spec.dut.i], name="significand-32", depth=4)


@pytest.mark.long
def test_of_fused_sums():
    spec = SignificandSpec(36)
    prove(spec, [spec.dut.i], name="significand-36", depth=4)


ALL = CONV_PRESETS["unit"].replace(types=("i8", "f16"))


class PostSpec(Spec):
    """The stage with the way of each of its transfers; a job holds while it is busy or has an input."""

    given = "i"

    def __init__(self, params):
        self.dut = PostProcessor(params)

    def specify(self, m, dut):
        held, was_output, was_add = Signal(), Signal.like(dut.job.output), Signal()
        m.d.sync += [held.eq(dut.busy | dut.i.valid), was_output.eq(dut.job.output), was_add.eq(dut.job.add)]
        with m.If(held):
            m.d.comb += Assume((dut.job.output == was_output) & (dut.job.add == was_add))

        lanes = Signal(6)
        m.d.comb += [
            lanes.eq(sum(dut.stages)),
            Assert(~dut.results.i.valid | dut.results.i.ready),
            Assert(dut.places == lanes + dut.results.level),
            Assert(dut.places <= 32),
            *queue_invariants(dut.results),
            Cover((dut.results.level == 3) & (lanes == 2)),
        ]
        # Nothing is behind the stage at which the job's results leave.
        output, longest = dut.job.output, len(dut.stages)
        quantised = (output == ConvOutput.U8) | (output == ConvOutput.S8)
        half = (output == ConvOutput.F16) | (output == ConvOutput.BF16)
        for cycles, leaves in (
            (0, ~quantised & ~half),
            (dut.HALF - 1, half),
            (dut.QUANTISED - 1, quantised & ~dut.job.add),
        ):
            with m.If(leaves & dut.busy):
                m.d.comb += [Assert(~stage) for stage in dut.stages[cycles:longest]]


@proved_and_covered(2, 12)
def test_nothing_is_lost(mode, depth):
    prove(PostSpec(ALL), name=f"post-{mode}", mode=mode, depth=depth, proves="F1")
