"""Operations on own barriers pass; calls go one at a time, in order with them; what no core may ask is refused here."""

import random

import pytest

from tilewright.golden.spec import BarrierOp
from tilewright.hw.cluster.barriers.caller import RemoteCaller
from tilewright.hw.smem.params import SmemParams
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.pysim.streams import STALL_MODES, receive, send, watch_stream

SEED = 20261124
CORES, OWN, REACH = 3, 1, 0b011
SMEM = SmemParams(1024)


def caller():
    return RemoteCaller(SMEM, CORES, OWN)


def random_request(rng, number):
    """An operation, and what must become of it: where it goes."""
    request = {"op": BarrierOp.ARRIVE, "address": 8 * number % 1024, "value": number}
    core = rng.choice([0, 0, OWN, 2, rng.randrange(16)])
    if rng.random() < 0.5:
        return request | {"op": rng.randrange(5)}, "own"
    request |= {"remote": 1, "core": core, "op": rng.choice([BarrierOp.ARRIVE] * 3 + list(BarrierOp))}
    if core == OWN:
        return request, "own"
    return request, "call" if core == 0 and request["op"] == BarrierOp.ARRIVE else "refused"


def answer_of(request):
    """What barriers answer in this test: done, error, and of a call whether it was closed."""
    closed = request["value"] % 5 == 4
    return {"done": request["value"] % 3 == 0 and not closed, "error": closed or request["value"] % 7 == 0}, closed


@pytest.mark.parametrize("mode", STALL_MODES)
def test_against_model(mode):
    dut, stalls, rng = elaborated(caller), STALL_MODES[mode], random.Random(SEED)
    print(f"seed {SEED}")
    drawn = [random_request(rng, number) for number in range(60)]
    wanted, events = [], []
    for request, goes in drawn:
        answer, closed = ({"done": 0, "error": 1}, True) if goes == "refused" else answer_of(request)
        if goes == "own":
            answer, closed = {"done": request["value"] & 1, "error": 0}, False
        wanted.append((answer["done"], answer["error"]))
        events += [request["address"]] * closed
    results, refused = [], []

    async def source(ctx):
        ctx.set(dut.reach, REACH)
        await send(ctx, dut.requests, [request for request, _ in drawn], idle=stalls["idle"])

    async def sink(ctx):
        got, _ = await receive(ctx, dut.results, len(drawn), stall=stalls["stall"])
        results.extend((answer.done, answer.error) for answer in got)
        await ctx.tick().repeat(20)

    async def own(ctx):
        while True:
            (request,), _ = await receive(ctx, dut.barriers, 1, stall=stalls["stall"], seed=len(results))
            await send(ctx, dut.barrier_results, [{"done": request.value & 1}])

    async def other(ctx):
        for seed in range(1 << 20):
            (call,), _ = await receive(ctx, dut.calls[0], 1, stall=stalls["stall"], seed=seed)
            await ctx.tick().repeat(3)
            answer, closed = answer_of({"value": call.value})
            ctx.set(dut.answer, answer | {"valid": 1, "closed": closed})
            await ctx.tick()
            ctx.set(dut.answer, {})

    async def listen(ctx):
        rng = random.Random(SEED)
        while True:
            ctx.set(dut.recorded, rng.random() >= stalls["stall"])
            sampled = ctx.tick().sample(dut.refused.valid & dut.recorded, dut.refused.address, dut.calls[2].valid)
            _, _, recorded, address, wrong = await sampled
            assert not wrong, "a core that may not be named is called"
            refused.extend([address] * recorded)

    simulate(dut, source, sink, background=[own, other, listen, watch_stream(dut.barriers), watch_stream(dut.calls[0])])
    assert results == wanted
    assert refused == events
    assert {goes for _, goes in drawn} == {"own", "call", "refused"}


def test_own_operations_one_a_cycle_after_one_cycle():
    dut = elaborated(caller)

    async def source(ctx):
        await send(ctx, dut.requests, [{"op": BarrierOp.ARRIVE, "address": 8 * k, "value": 1} for k in range(6)])

    async def barriers(ctx):
        got, cycles = await receive(ctx, dut.barriers, 6)
        assert [request.address for request in got] == [8 * k for k in range(6)]
        assert cycles == [*range(1, 7)]

    simulate(dut, source, barriers)
