"""Jobs one behind the other: order of their stages, what is constant meanwhile, arrivals, and how each ends."""

import random
from itertools import pairwise

import pytest
from amaranth.hdl import Elaboratable, Module, Signal, Value

from support.conv import conv_unit
from support.streams import recording, transact
from tilewright.hw.conv.job.run import JobRunner
from tilewright.spec import BarrierOp
from tilewright.spec.conv import JOB, ConvError
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, receive, send, unpacker, watch_stream

SEED = 17
PARAMS, FLOATS = conv_unit(), conv_unit(types=("i8", "f16"))
BARRIER = JOB.index("barrier")


#: Fields of a job that its plan has as they are; flags that are hidden in reserved bits of a word here.
COPIED = ("tag", "barrier", "signal")
FOLLOWS = ("x_follows", "k_follows")
FLAGS = {"lanes": 1000, "floats": 1001, "bias": 1002, "early": 1003}


class WithPlans(Elaboratable):
    """The runner with what stands for JobSetup: plans of what the runner looks at; ``wait`` holds one back."""

    def __init__(self, params=PARAMS):
        self.runner = JobRunner(params)
        self.flags = [name for name in FLAGS if name != "floats" or params.floats]
        self.wait = Signal()

    def elaborate(self, platform):
        m = Module()
        m.submodules.runner = runner = self.runner
        word, plan = runner.checked.payload.word, runner.plans.payload
        for name in COPIED:
            m.d.comb += plan[name].eq(word[JOB[name].lsb :][: JOB[name].width])
        m.d.comb += [plan[name].eq(word[FLAGS[name]]) for name in self.flags]
        shown = Signal()  # what has been shown stays
        m.d.sync += shown.eq(runner.plans.valid & ~runner.plans.ready)
        m.d.comb += runner.plans.valid.eq(runner.checked.valid & (shown | ~self.wait))
        return m


class Stages:
    """What stands for the blocks: each stage of a job takes some cycles, and not all of them before the one before.

    Looks at what is constant and what is before what (docs/conv.md, "Queue and barrier"). ``spans`` has for each job,
    by its tag, the cycles in which each stage began and ended, and ``read`` the tags of those whose weights have come.
    """

    STAGES = ("load", "fetch", "compute", "write")

    def __init__(self, dut, rng, most=30):
        self.dut, self.rng, self.most = dut, rng, most
        self.spans, self.ends, self.read = {}, [], set()
        # By stage: the bits of the plan, the cycles that are left, and the tag.
        self.under_way, self.plan = dict.fromkeys(self.STAGES), unpacker(dut.runner.load.shape())
        self.cycle = self.hidden = self.coming = 0

    async def run(self, ctx):
        runner = self.dut.runner
        inputs = {"load": runner.loading, "fetch": runner.fetching, "compute": runner.computing}
        # As numbers, which are unpacked where somebody looks: in each cycle that takes longer than all of the design.
        starts = [getattr(runner, f"{name}_start") for name in self.STAGES]
        plans = [Value.cast(getattr(runner, name)) for name in self.STAGES]
        samples = [value for pair in zip(starts, plans, strict=True) for value in pair]
        end_of = unpacker(runner.end.shape())
        async for _, _, *seen in ctx.tick().sample(*samples, runner.ended, Value.cast(runner.end)):
            *seen, ended, end = seen
            for number, name in enumerate(self.STAGES):
                self._stage(name, *seen[2 * number : 2 * number + 2])
            for name, busy in inputs.items():
                ctx.set(busy, self.under_way[name] is not None)
            self.coming = self.rng.randrange(1, 9) if self.under_way["load"] else max(0, self.coming - 1)
            ctx.set(runner.weights_read, not self.coming)
            if not self.coming:
                self.read.update(self.spans)
            writing = self.under_way["write"]
            written = writing is not None and writing[1] <= 0
            self.hidden = self.rng.randrange(4) if not written else max(0, self.hidden - 1)
            ctx.set(runner.written, written)
            ctx.set(runner.readable, not written or not self.hidden)
            if ended:
                end = end_of(end)
                self.ends.append((end.code, end.field, end.tag))
                if writing and writing[2] == end.tag:
                    assert written, "nothing ends before its results are written"
                    self.spans[end.tag]["write"].append(self.cycle)
                    self.under_way["write"] = None
            self.cycle += 1

    def _stage(self, name, start, plan):
        """A cycle of a stage; it cannot end before the one that brings what it needs."""
        job = self.under_way[name]
        if start:
            assert job is None, f"{name}: one at a time"
            tag = self.plan(plan)["tag"]
            self.under_way[name] = [plan, self.rng.randrange(1, self.most), tag]
            self.spans.setdefault(tag, {})[name] = [self.cycle]
        elif job is not None:
            assert plan == job[0], f"the plan of {name} stays"
            job[1] -= 1
            for before in {"compute": ("load", "fetch"), "write": ("compute",)}.get(name, ()):
                brought = self.spans[job[2]].get(before, [])
                job[1] = max(job[1], len(brought) < 2)
            if job[1] == 0 and name != "write":
                self.spans[job[2]][name].append(self.cycle)
                self.under_way[name] = None


def some_jobs(rng, count, flags=()):
    """What the checker hands on, and how each job ends if its barrier takes the arrival."""
    for number in range(count):
        code = rng.choice([ConvError.NONE] * 5 + [ConvError.VERSION, ConvError.OVERLAP])
        fields = {"tag": number, "signal": rng.getrandbits(1), "barrier": 16 * number}
        word = sum(value << JOB[name].lsb for name, value in fields.items())
        fields |= {name: int(rng.random() < 0.3) for name in flags}
        fields["early"] &= fields["signal"]
        fields |= {name: int(rng.random() < 0.2) for name in FOLLOWS}
        word |= sum(fields[name] << FLAGS[name] for name in flags)
        checked = {"word": word, "code": code, "field": rng.randrange(1, 60) if code else 0}
        yield checked | {name: fields[name] for name in FOLLOWS}, fields


def check_order(jobs, spans):
    """Which stage of a job is behind which one of the job before; returns how many jobs have begun before others ended.

    ``jobs`` are the fields of all legal ones, and None in place of refused ones.
    """
    early = 0
    for before, fields in pairwise(jobs):
        if before is None or fields is None:
            continue
        this, last = spans[fields["tag"]], spans[before["tag"]]
        for name in Stages.STAGES:
            assert this[name][0] > last[name][-1], name
        assert this["load"][0] < min(this[name][0] for name in Stages.STAGES[1:])
        assert this["load"][0] > max(begun for begun, _ in last.values())
        for name, stage in zip(FOLLOWS, ("fetch", "load"), strict=True):
            assert not fields[name] or this[stage][0] > last["write"][-1]
        if fields["lanes"] != before["lanes"]:
            assert this["load"][0] > last["compute"][-1]
        if fields.get("floats") and fields["bias"]:
            assert this["compute"][0] > last["write"][-1]
        early += this["fetch"][0] < last["compute"][-1] and this["compute"][0] < last["write"][-1]
        early += this["load"][0] < last["fetch"][-1]
    return early


@pytest.mark.parametrize("built", [False, True], ids=["integers", "floats"])
@pytest.mark.parametrize("mode", STALL_MODES)
def test_jobs_end_in_order(mode, built):
    dut, rng, stalls = elaborated(WithPlans, FLOATS if built else PARAMS), random.Random(SEED), STALL_MODES[mode]
    runner, stages = dut.runner, Stages(dut, random.Random(SEED))
    jobs = list(some_jobs(rng, 180, dut.flags))
    expected, arrivals = [], []
    for job, fields in jobs:
        end = job["code"], job["field"], fields["tag"]
        if not job["code"] and fields["signal"]:
            refusals = [rng.random() < 0.2 for _ in range(1 + fields["early"])]
            arrivals += [(fields["barrier"] + 8 * early, refusals[early]) for early in range(len(refusals))][::-1]
            end = (ConvError.BARRIER, BARRIER, fields["tag"]) if any(refusals) else end
        expected.append(end)
    arrived, ahead = [], 0

    async def checker(ctx):
        await send(ctx, runner.checked, [job for job, _ in jobs], idle=stalls["idle"], seed=SEED)
        while len(stages.ends) < len(jobs):
            await ctx.tick()
        await ctx.tick().repeat(3)

    async def late(ctx):
        async for _ in ctx.tick():
            ctx.set(dut.wait, rng.random() < stalls["stall"])

    async def barrier(ctx):
        nonlocal ahead
        for address, refused in arrivals:
            (request,), _ = await receive(ctx, runner.barriers, 1, stall=stalls["stall"], seed=address)
            assert (request.op, request.address, request.value) == (BarrierOp.ARRIVE, address, 1)
            arrived.append(len(stages.ends))
            if address % 16:
                assert arrived[-1] in stages.read, "its weights have been read"
                ahead += len(stages.spans[arrived[-1]].get("compute", ())) < 2
            await send(ctx, runner.barrier_results, [{"done": 1, "error": refused}], idle=stalls["idle"], seed=address)

    background = [stages.run, late, watch_stream(runner.barriers, "barriers")]
    simulate(dut, checker, barrier, background=background, deadline=50_000)
    assert stages.ends == expected
    legal = [None if job["code"] else fields for job, fields in jobs]
    assert list(stages.spans) == [fields["tag"] for fields in legal if fields]
    assert arrived == [number for number, (job, fields) in enumerate(jobs) if fields["signal"] and not job["code"]
                       for _ in range(1 + fields["early"])]  # fmt: skip
    assert ahead > 5, f"seed {SEED}"
    assert check_order(legal, stages.spans) > 5, f"seed {SEED}"


def test_refused_jobs_end_at_full_rate():
    """One a cycle, one cycle after each is taken."""
    dut = elaborated(WithPlans)
    runner, ends = dut.runner, []
    jobs = [{"word": number << JOB["tag"].lsb, "code": 3, "field": number} for number in range(10)]

    background = [recording(ends, runner.ended, runner.end.field, runner.end.tag)]
    _, cycles = transact(dut, {"runner.checked": jobs}, settle=3, background=background)
    taken = cycles["runner.checked"]
    assert taken == list(range(taken[0], taken[0] + 10))
    assert ends == [(taken[0] + 1 + number, number, number) for number in range(10)]


def test_latency():
    """All stages begin a cycle after the first one; an end comes in the cycle after results can be read, and the next
    job is written a cycle later.
    """
    dut = elaborated(WithPlans)
    seen = {name: [] for name in (*(f"{stage}_start" for stage in Stages.STAGES), "ended")}
    background = [recording(log, getattr(dut.runner, name)) for name, log in seen.items()]
    jobs = {"runner.checked": [{"word": number << JOB["tag"].lsb} for number in range(3)]}
    inputs = {"runner.written": 1, "runner.readable": 1}
    transact(dut, jobs, inputs=inputs, settle=6, background=background)
    wanted = {name: [(2,), (5,), (8,)] for name in seen}
    assert seen == wanted | {"load_start": [(1,), (4,), (7,)], "ended": [(4,), (7,), (10,)]}
