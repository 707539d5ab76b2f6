"""Calls arrive where the core has opened its barriers; own operations take turns with them; latency."""

import random

import pytest

from tilewright.golden.spec import BarrierOp
from tilewright.hw.cluster.barriers.gate import BarrierGate
from tilewright.hw.smem.params import SmemParams
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.pysim.streams import STALL_MODES, receive, send, watch_stream

SEED = 20261124
CORES, OWN = 3, 0
SMEM = SmemParams(1024)
ACCEPTANCE = {"cores": 0b011, "confine": 1, "first": 2, "last": 5}


def gate():
    return BarrierGate(SMEM, CORES)


def is_open(core, address):
    return core == 1 and 256 <= address < 768 and address % 8 == 0


def run(own, calls, mode="none"):
    """Operations at the barriers, results of own ones, and answers to the calls of each core."""
    dut, stalls = elaborated(gate), STALL_MODES[mode]
    seen, results, answers = [], [], [[] for _ in range(CORES)]

    async def processor(ctx):
        ctx.set(dut.acceptance, ACCEPTANCE)
        await send(ctx, dut.own, own, idle=stalls["idle"])

    async def listener(ctx):
        got, _ = await receive(ctx, dut.own_results, len(own), stall=stalls["stall"])
        results.extend((answer.done, answer.error) for answer in got)

    async def barriers(ctx):
        while True:
            (request,), _ = await receive(ctx, dut.barriers, 1, stall=stalls["stall"], seed=len(seen))
            seen.append((request.op, request.address, request.value))
            await send(ctx, dut.results, [{"done": request.value & 1, "error": request.value >> 1 & 1}])

    def core(number):
        async def process(ctx):
            for seed, call in enumerate(calls[number]):
                await send(ctx, dut.calls[number], [call], idle=stalls["idle"], seed=seed)
                while True:
                    _, _, answer = await ctx.tick().sample(dut.answers[number])
                    if answer.valid:
                        break
                answers[number].append((answer.done, answer.error, answer.closed))

        return process

    cores = [core(number) for number in range(CORES) if calls[number]]
    simulate(dut, processor, listener, *cores, background=[barriers, watch_stream(dut.barriers)])
    return seen, results, answers


@pytest.mark.parametrize("mode", STALL_MODES)
def test_against_model(mode):
    rng = random.Random(SEED)
    print(f"seed {SEED}")
    own = [{"op": rng.randrange(5), "address": 8 * k, "value": rng.randrange(8)} for k in range(30)]
    calls = [[], *([{"address": rng.choice([rng.randrange(1024), 8 * rng.randrange(128)]), "value": rng.randrange(8)}
                    for _ in range(25)] for _ in range(2))]  # fmt: skip
    seen, results, answers = run(own, calls, mode)
    assert results == [(one["value"] & 1, one["value"] >> 1 & 1) for one in own]
    let = [call for core in range(CORES) for call in calls[core] if is_open(core, call["address"])]
    assert sorted(seen) == sorted(
        [(one["op"], one["address"], one["value"]) for one in own]
        + [(BarrierOp.ARRIVE, call["address"], call["value"]) for call in let]
    )
    for core in range(CORES):
        assert answers[core] == [
            (call["value"] & 1, call["value"] >> 1 & 1, 0) if is_open(core, call["address"]) else (0, 1, 1)
            for call in calls[core]
        ]
    assert 5 < len(let) < 20


def test_latency_of_a_call():
    """Two registers to the barrier; its result goes through two."""
    dut, cycles = elaborated(gate), {}

    async def process(ctx):
        ctx.set(dut.acceptance, ACCEPTANCE)
        ctx.set(dut.barriers.ready, 1)
        ctx.set(dut.calls[1].p, {"address": 256, "value": 1})
        ctx.set(dut.calls[1].valid, 1)
        ticks = aiter(ctx.tick().sample(dut.barriers.valid, dut.answers[1].valid))
        for cycle in range(8):
            _, _, asks, answered = await anext(ticks)
            ctx.set(dut.calls[1].valid, 0)
            ctx.set(dut.results.valid, asks)
            for name, happens in (("asks", asks), ("answered", answered)):
                if happens:
                    cycles.setdefault(name, cycle)

    simulate(dut, process)
    assert cycles == {"asks": 2, "answered": 5}
