"""F1: jobs are neither lost nor doubled between check, setup and what runs them, and hold while they wait."""

import pytest
from amaranth.hdl import Assert, Assume, Cat, Cover, Mux, Signal

from support.formal import Spec
from tilewright.hw.conv.job.check import JobChecker
from tilewright.hw.conv.job.run import JobRunner
from tilewright.hw.conv.job.setup import JobSetup
from tilewright.hw.conv.params import ConvUnitParams
from tilewright.hw.smem.params import SmemParams
from tilewright.spec.conv import CONV_PRESETS, ConvError
from tilewright.verify.formal import prove

PARAMS = ConvUnitParams(CONV_PRESETS["unit"], SmemParams(1024))


class JobSpec(Spec):
    """A block that takes a job just when what it made of it has been taken; what it works with is at rest then."""

    given, made = "i", "o"

    def __init__(self, dut, *busy):
        self.dut = dut
        self.busy = busy

    def specify(self, m, dut):
        given = Signal()
        m.d.sync += given.eq(dut.o.valid & dut.o.ready)
        m.d.comb += [Assert(dut.i.ready == given), Assert(sum(self.busy) + dut.o.valid + dut.i.ready <= dut.i.valid)]


@pytest.mark.parametrize("cores", [1, 2])
def test_check(cores):
    """Also in a core that is stopped and started at any time: what has been offered stays."""
    dut = JobChecker(PARAMS, cores)
    prove(JobSpec(dut, dut.calculator.busy, dut.ends), name=f"job-check-{cores}", depth=2, proves="F1")


def test_setup():
    dut = JobSetup(PARAMS)
    prove(JobSpec(dut, dut.calculator.busy, dut.divider.busy), name="job-setup", depth=2, proves="F1")


RUN_PARAMS = ConvUnitParams(CONV_PRESETS["unit"].replace(types=("i8", "f16")), SmemParams(1024))
STAGES = ("load", "fetch", "compute", "write")
_COUNT = 4


class RunSpec(Spec):
    """Counts what has begun and ended; a job's flags are kept here once more from when it is loaded."""

    given, made = "checked plans", "barriers"

    def specify(self, m, dut):
        # A job and its plan are taken together, whichever comes first.
        checked, plan = (stream.valid & stream.ready for stream in (dut.checked, dut.plans))
        m.d.comb += Assert(checked == plan)

        starts = {stage: getattr(dut, f"{stage}_start") for stage in STAGES}
        busy = {"load": dut.loading, "fetch": dut.fetching, "compute": dut.computing}
        begun = {stage: Signal(_COUNT, name=f"{stage}_begun") for stage in STAGES}
        ended, refused = Signal(_COUNT), Signal()
        m.d.sync += refused.eq(dut.checked.valid & dut.checked.ready & (dut.checked.payload.code != ConvError.NONE))
        m.d.sync += ended.eq(ended + (dut.ended & ~refused))
        for stage in STAGES:
            m.d.sync += begun[stage].eq(begun[stage] + starts[stage])
            # Two jobs, the later of which is loaded.
            m.d.comb += Assert((begun["load"] - begun[stage])[:_COUNT] <= 1)
        under_way = (begun["load"] - ended)[:_COUNT]
        m.d.comb += [
            Assert(under_way <= 2),
            Assert((begun["write"] - ended)[:_COUNT] <= 1),
            Assume(~begun["load"].all()),
        ]

        # Blocks are busy only after their start, and a stage begins when its blocks have been at rest for a cycle.
        for stage, is_busy in busy.items():
            was, started = Signal(name=f"{stage}_was"), Signal(name=f"{stage}_started")
            m.d.sync += [was.eq(is_busy), started.eq(starts[stage])]
            m.d.comb += [Assume(~is_busy | was | started), Assert(~(starts[stage] & (was | started)))]
            # Results need all of it.
            m.d.comb += Assume(~dut.written | ((begun[stage] - is_busy - begun["write"])[:_COUNT] <= 1))
        m.d.comb += Assert(~starts["write"] | (begun["write"] == ended))

        # Flags of the newest job, from its plan on.
        flags, lanes, biased, last_lanes = Signal(2), Signal(), Signal(), Signal()
        of_plan, computed = dut.plans.payload, Signal()
        with m.If(plan & (dut.checked.payload.code == ConvError.NONE)):
            m.d.sync += [flags[0].eq(dut.checked.payload.x_follows), flags[1].eq(dut.checked.payload.k_follows)]
            m.d.sync += [lanes.eq(of_plan.lanes), last_lanes.eq(lanes), biased.eq(of_plan.floats & of_plan.bias)]
        alone = ended == (begun["load"] - 1)[:_COUNT]  # all jobs before the one that has been loaded have ended
        m.d.sync += computed.eq(~dut.computing & ~starts["compute"] & (begun["compute"] == begun["load"]))
        m.d.comb += [
            Assert(~(starts["fetch"] & flags[0]) | alone),
            Assert(~(starts["load"] & flags[1]) | (ended == begun["load"])),
            Assert(~(starts["load"] & (lanes ^ last_lanes)) | computed),
            Assert(~(starts["compute"] & biased) | alone),
            # A refused job ends behind all others.
            Assert(~refused | ((under_way == 0) & dut.ended)),
        ]
        self._arrivals(m, starts["load"], starts["write"], begun["load"] == begun["write"], refused)
        array = ("lanes", "pool", "maximum", "granularity", "wide", "x_signed", "k_signed", "x_zero", "k_zero",
                 "floats", "brain", "bias")  # fmt: skip
        same = Cat(dut.load[name] == dut.compute[name] for name in array).all()
        m.d.comb += Assert(~dut.overlaps | same)
        m.d.comb += [
            Cover(dut.overlaps & (begun["compute"] == 1) & dut.computing),
            Cover(starts["fetch"] & (under_way == 2) & (ended == 1)),
            Cover(starts["compute"] & (under_way == 2) & (ended == 1)),
            Cover(refused & (ended == 2)),
        ]

    def _arrivals(self, m, load_start, write_start, newest, refused):
        """Those of the job in the last stage, which may be the ``newest`` one."""
        dut, plan, arrivals = self.dut, self.dut.plans.payload, Signal(2)
        read, before = Signal(), Signal()  # weights of the newest job have come; those of the one before it
        m.d.sync += read.eq(read | (~dut.loading & dut.weights_read))
        with m.If(load_start):
            m.d.sync += [read.eq(0), before.eq(read | (~dut.loading & dut.weights_read))]
        m.d.sync += arrivals.eq(arrivals + (dut.barrier_results.valid & dut.barrier_results.ready))
        with m.If(write_start):
            m.d.sync += arrivals.eq(0)
        early = dut.write.early & (arrivals == 0)
        place = (dut.write.barrier + Mux(early, 8, 0))[: len(dut.write.barrier)]
        m.d.comb += [
            Assume(~dut.plans.valid | ~plan.early | plan.signal),
            Assert(~dut.barriers.valid | (dut.barriers.payload.address == place)),
            Assert(~(dut.barriers.valid & early) | Mux(newest, read, before)),
            Assert(~dut.ended | refused | (arrivals == dut.write.signal + dut.write.early)),
            Cover(dut.barriers.valid & early & newest & dut.computing),
            Cover(dut.ended & ~refused & (arrivals == 2)),
        ]


@pytest.mark.parametrize(("mode", "depth"), [("bmc", 22), pytest.param("cover", 22, marks=pytest.mark.long)])
def test_stages(mode, depth):
    prove(RunSpec(JobRunner(RUN_PARAMS)), name=f"conv-run-{mode}", mode=mode, depth=depth)
