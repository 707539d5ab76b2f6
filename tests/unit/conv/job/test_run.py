"""Jobs one after the other: order, what is constant meanwhile, arrivals, and how each ends."""

import random

import pytest
from amaranth.hdl import Elaboratable, Module, Signal

from tilewright.golden.spec import BarrierOp
from tilewright.golden.spec.conv.errors import ConvError
from tilewright.golden.spec.conv.job import JOB
from tilewright.golden.spec.conv.params import CONV_PRESETS
from tilewright.hw.conv.job.run import JobRunner
from tilewright.hw.conv.params import ConvUnitParams
from tilewright.hw.smem.params import SmemParams
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.pysim.streams import STALL_MODES, receive, send, watch_stream

SEED = 17
PARAMS = ConvUnitParams(CONV_PRESETS["unit"], SmemParams(4096))
BARRIER = JOB.index("barrier")


class WithPlans(Elaboratable):
    """The runner with what stands for JobSetup: plans of a tag, a barrier and whether to arrive; ``wait`` holds one."""

    def __init__(self):
        self.runner = JobRunner(PARAMS)
        self.wait = Signal()

    def elaborate(self, platform):
        m = Module()
        m.submodules.runner = runner = self.runner
        word, plan = runner.legal.payload, runner.plans.payload
        for name in ("tag", "barrier", "signal"):
            m.d.comb += plan[name].eq(word[JOB[name].lsb :][: JOB[name].width])
        shown, taken = Signal(), Signal()  # what has been shown stays; the job leaves behind its plan
        m.d.sync += [
            shown.eq(runner.plans.valid & ~runner.plans.ready),
            taken.eq(runner.plans.valid & runner.plans.ready),
        ]
        m.d.comb += [
            runner.plans.valid.eq(runner.legal.valid & ~taken & (shown | ~self.wait)),
            runner.legal.ready.eq(taken),
        ]
        return m


def some_jobs(rng, count):
    """What the checker hands on, and how each job ends if its barrier takes the arrival."""
    for number in range(count):
        code = rng.choice([ConvError.NONE] * 3 + [ConvError.VERSION, ConvError.OVERLAP])
        fields = {"tag": rng.getrandbits(16), "signal": rng.getrandbits(1), "barrier": 8 * number}
        word = sum(value << JOB[name].lsb for name, value in fields.items())
        yield {"word": word, "code": code, "field": rng.randrange(1, 60) if code else 0}, fields


@pytest.mark.parametrize("mode", STALL_MODES)
def test_jobs_end_in_order(mode):
    dut, rng, stalls = elaborated(WithPlans), random.Random(SEED), STALL_MODES[mode]
    runner = dut.runner
    jobs = list(some_jobs(rng, 60))
    refusals = [rng.random() < 0.3 for _ in jobs]
    expected, arrivals = [], []
    for (job, fields), refused in zip(jobs, refusals, strict=True):
        end = job["code"], job["field"], fields["tag"]
        if not job["code"] and fields["signal"]:
            arrivals.append((fields["barrier"], refused))
            end = (ConvError.BARRIER, BARRIER, fields["tag"]) if refused else end
        expected.append(end)
    runs = [fields["tag"] for job, fields in jobs if not job["code"]]
    ends, begun, arrived = [], [], []

    async def checker(ctx):
        await send(ctx, runner.checked, [job for job, _ in jobs], idle=stalls["idle"], seed=SEED)
        while len(ends) < len(jobs):
            await ctx.tick()
        await ctx.tick().repeat(3)

    async def engine(ctx):
        """Works for some cycles; then all is written, and then it can be read."""
        left, readable = None, 0
        async for _, _, start in ctx.tick().sample(runner.start):
            if start:
                left, readable = rng.randrange(1, 12), rng.randrange(4)
            elif left:
                left -= 1
            elif readable:
                readable -= 1
            ctx.set(runner.written, left == 0 and not start)
            ctx.set(runner.readable, left != 0 or not readable)
            ctx.set(dut.wait, rng.random() < stalls["stall"])

    async def barrier(ctx):
        for address, refused in arrivals:
            (request,), _ = await receive(ctx, runner.barriers, 1, stall=stalls["stall"], seed=address)
            assert (request.op, request.address, request.value) == (BarrierOp.ARRIVE, address, 1)
            arrived.append(len(ends))
            await send(ctx, runner.barrier_results, [{"done": 1, "error": refused}], idle=stalls["idle"], seed=address)

    async def watch(ctx):
        held, done = None, False
        async for _, _, start, active, plan, ended, end, is_done in ctx.tick().sample(
            runner.start, runner.active, runner.plan, runner.ended, runner.end, runner.written & runner.readable
        ):
            if start:
                assert held is None and active, "one at a time"
                held, done = plan, False
                begun.append(plan["tag"])
            elif held is not None:
                assert plan == held
                if ended:
                    assert done, "nothing ends before its results can be read"
                    held = None
                done = done or is_done
            assert active == (held is not None)
            if ended:
                ends.append((end.code, end.field, end.tag))

    simulate(dut, checker, barrier, background=[engine, watch, watch_stream(runner.barriers, "barriers")])
    assert ends == expected
    assert begun == runs
    assert arrived == [number for number, (job, fields) in enumerate(jobs) if fields["signal"] and not job["code"]]


def test_refused_jobs_end_at_full_rate():
    """One a cycle, one cycle after each is taken."""
    dut = elaborated(WithPlans)
    runner, taken, ends = dut.runner, [], []
    jobs = [{"word": number << JOB["tag"].lsb, "code": 3, "field": number} for number in range(10)]

    async def checker(ctx):
        taken.extend(await send(ctx, runner.checked, jobs))
        await ctx.tick().repeat(3)

    async def watch(ctx):
        cycle = 0
        async for _, _, ended, end in ctx.tick().sample(runner.ended, runner.end):
            if ended:
                ends.append((cycle, end.field, end.tag))
            cycle += 1

    simulate(dut, checker, background=[watch])
    assert taken == list(range(taken[0], taken[0] + 10))
    assert ends == [(taken[0] + 1 + number, number, number) for number in range(10)]


def test_latency():
    """The next job starts two cycles after one has ended; an end comes in the cycle after results can be read."""
    dut = elaborated(WithPlans)
    runner, seen = dut.runner, []

    async def checker(ctx):
        ctx.set(runner.written, 1)
        ctx.set(runner.readable, 1)
        await send(ctx, runner.checked, [{"word": number << JOB["tag"].lsb} for number in range(3)])
        await ctx.tick().repeat(6)

    async def watch(ctx):
        cycle = 0
        async for _, _, start, ended in ctx.tick().sample(runner.start, runner.ended):
            if start or ended:
                seen.append((cycle, "start" if start else "end"))
            cycle += 1

    simulate(dut, checker, background=[watch])
    assert seen == [(1 + 3 * job + more, what) for job in range(3) for more, what in ((0, "start"), (2, "end"))]
