"""Operations on barriers: each asked once; a wait again and again, at flips, until it is true or given up."""

import pytest

from tilewright.golden.spec import BarrierOp
from tilewright.hw.core.program.barriers import PATIENCE, BarrierCaller
from tilewright.hw.smem.params import SmemParams
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.pysim.streams import STALL_MODES, receive, send, watch_stream

PARAMS = SmemParams(4096)
WAIT = {"op": BarrierOp.TRY_WAIT, "address": 64, "value": 1}


def run(call, answers, mode="none", flips=(), give_up=None):
    """How a call ends: failed, passed, the cycle; and what was asked."""
    dut, out = elaborated(BarrierCaller, PARAMS), {"asked": []}
    stall = STALL_MODES[mode]["stall"]

    async def caller(ctx):
        ctx.set(dut.i.payload, call)
        ctx.set(dut.i.valid, 1)
        cycle = 0
        while True:
            ctx.set(dut.flip.valid, cycle in dict(flips))
            ctx.set(dut.flip.address, dict(flips).get(cycle, 0))
            ctx.set(dut.give_up, give_up is not None and cycle >= give_up)
            _, _, ready, failed, passed = await ctx.tick().sample(dut.i.ready, dut.failed, dut.passed)
            if ready:
                out["end"] = failed, passed, cycle
                ctx.set(dut.i.valid, 0)
                return
            cycle += 1

    async def barriers(ctx):
        for answer in answers:
            asked, _ = await receive(ctx, dut.requests, 1, stall=stall, seed=len(out["asked"]))
            out["asked"] += [(item.op, item.address, item.value) for item in asked]
            await send(ctx, dut.results, [answer], idle=stall, seed=len(out["asked"]))

    simulate(dut, caller, barriers, background=[watch_stream(dut.requests)], deadline=2000)
    return out["end"], out["asked"]


@pytest.mark.parametrize("mode", STALL_MODES)
@pytest.mark.parametrize("op", [op for op in BarrierOp if op != BarrierOp.TRY_WAIT])
def test_an_operation(op, mode):
    """Is asked once, whatever ``done`` says of it."""
    for done in (0, 1):
        for error in (0, 1):
            answer = {"done": done, "error": error}
            (failed, passed, _), asked = run({"op": op, "address": 128, "value": 77}, [answer], mode)
            assert (failed, passed) == (error, 1 - error) and asked == [(op, 128, 77)]


@pytest.mark.parametrize("mode", STALL_MODES)
def test_a_wait(mode):
    not_yet = {"done": 0, "error": 0}
    flips = dict.fromkeys(range(3, 2000, 4), 64)
    (failed, passed, _), asked = run(WAIT, [not_yet, not_yet, {"done": 1, "error": 0}], mode, flips.items())
    assert (failed, passed) == (0, 1) and asked == 3 * [(BarrierOp.TRY_WAIT, 64, 1)]


def test_when_it_is_asked_again():
    """Two cycles after the flip of that barrier; after ``PATIENCE`` cycles without one."""
    answers = [{"done": 0, "error": 0}, {"done": 1, "error": 0}]
    (_, _, first), _ = run(WAIT, answers, flips=[(5, 64)])
    (_, _, other), _ = run(WAIT, answers, flips=[(5, 72)])
    assert first == 8 and other == 2 + PATIENCE + 1


def test_a_wait_that_is_given_up():
    (failed, passed, cycle), asked = run(WAIT, [{"done": 0, "error": 0}], give_up=20)
    assert (failed, passed, cycle) == (0, 0, 20) and len(asked) == 1
    # An answer that is under way is waited for.
    (failed, passed, _), _ = run(WAIT, [{"done": 1, "error": 0}], "stall", give_up=0)
    assert passed
