"""Decoder and Issue: items that leave, their order and contents, without and with arithmetic."""

import random

import pytest

from support.pe_issue import SIZES, Front, compare, pack, random_instruction, run
from tilewright.hw.pe.layouts import BASES_SETS, JobKind
from tilewright.spec.pe import MmType, Operation, PeError
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, send


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("mode", STALL_MODES)
def test_random_programs(mode, size):
    rng, params = random.Random(f"issue program {mode}"), SIZES[size]
    words = [random_instruction(rng, params) for _ in range(400 if params.units else 330)]
    log = run(words, params=params, mode=mode)
    compare(log, words, params)
    codes = {item.code for _, name, item in log if name == "fault"}
    assert codes == set(range(PeError.BARRIER + 1))
    jobs = [item for _, name, item in log if name == "job"]
    assert {job.kind for job in jobs} == set(JobKind)
    assert {job.rebuild for job in jobs} == {job.flush for job in jobs} == {0, 1}
    assert {job.bases_set for job in jobs} == set(range(BASES_SETS))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("mode", STALL_MODES)
def test_a_core_that_is_stopped_at_any_time(mode, size):
    """Instructions that start then are refused, waits may be, and all others proceed as before."""
    # Seeds with which waits are given up, too.
    seed = {"alone": f"issue stop {mode}", "arithmetic": f"issue stop {mode} arithmetic 4"}[size]
    rng, refused, given_up, params = random.Random(seed), set(), set(), SIZES[size]

    def script(front):
        issue = front.issue
        begins = issue.starts & issue.i.valid & issue.stopped
        waited = issue.waits.valid & issue.waits.ready & issue.wait_refused

        async def stop(ctx):
            while True:
                for stopped in (0, 1):
                    ctx.set(issue.stopped, stopped)
                    for _ in range(rng.choice([1, 2, 5, 60])):
                        ctx.set(issue.wait_refused, stopped and rng.random() < 0.5)
                        *_, number, begun, over = await ctx.tick().sample(issue.i.payload.number, begins, waited)
                        refused.update([number] * begun)
                        given_up.update([number] * over)

        return stop

    words = [random_instruction(rng, params) for _ in range(700 if params.units else 500)]
    log = run(words, params=params, mode=mode, also=[script], cores=2)
    compare(log, words, params, refused=refused, given_up=given_up)
    assert len(refused) > 50 and (given_up or not STALL_MODES[mode]["stall"])
    assert sum(name == "job" for _, name, _ in log) > 20


NAMED = pack(Operation.MOVU, ud=0, imm=0)


def mm(**fields):
    return pack(Operation.MM, **{"rf": 20, "ra": 30, "type": MmType.S8S8, **fields})


def cycles(log, wanted):
    return [cycle for cycle, name, _ in log if name == wanted]


@pytest.mark.parametrize("params", SIZES.values(), ids=SIZES)
def test_an_mm_takes_four_cycles(params):
    words = [NAMED, *(mm(rc=8 * number % 16) for number in range(20))]
    log = run(words, params=params)
    compare(log, words, params)
    jobs = cycles(log, "job")
    assert jobs == cycles(log, "multiply") == list(range(jobs[0], jobs[0] + 4 * 20, 4))


@pytest.mark.parametrize(("strobe", "rebuild"), [("segment_written", 1), ("page_written", 0)])
def test_tables_that_are_written_are_looked_at_again(strobe, rebuild):
    def script(front):
        async def write(ctx):
            while True:
                number = (await ctx.tick().sample(front.issue.i.payload.number, front.issue.jobs.valid))[2:]
                ctx.set(getattr(front.issue, strobe), number == (4, 1))

        return write

    words = [NAMED, *(mm() for _ in range(8))]
    jobs = [item for _, name, item in run(words, also=[script]) if name == "job"]
    assert [job.flush for job in jobs] == [1, 0, 0, 0, 1, 0, 0, 0]
    assert [job.rebuild for job in jobs] == [1, 0, 0, 0, rebuild, 0, 0, 0]


def test_idle():
    front = elaborated(Front, SIZES["alone"])

    async def testbench(ctx):
        assert ctx.get(front.issue.idle)
        await send(ctx, front.decoder.i, [NAMED])
        await ctx.tick()
        assert not ctx.get(front.issue.idle)
        ctx.set(front.issue.faults.ready, 1)
        await ctx.tick().repeat(2)
        assert ctx.get(front.issue.idle)

    simulate(front, testbench)
