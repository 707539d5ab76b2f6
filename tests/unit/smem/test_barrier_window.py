"""The barrier window: an operation by registers, whatever the port behind it does."""

import random

import pytest

from tilewright.golden.spec import BarrierOp
from tilewright.golden.spec.host_windows import BARRIER_WINDOW_REGISTERS
from tilewright.hw.smem.barrier_window import BarrierWindow
from tilewright.hw.smem.params import SmemParams
from tilewright.sim.pysim.simulate import simulate
from tilewright.sim.pysim.streams import STALL_MODES, receive, send, watch_stream

SEED = 6
PARAMS = SmemParams(1024)
ADDRESS, OPERATION, RESULT = (register.offset for register in BARRIER_WINDOW_REGISTERS)
OPERATION_FORMAT = BARRIER_WINDOW_REGISTERS[1].format


def write(offset, data=0):
    return {"address": offset, "write": 1, "data": data}


def read(offset):
    return {"address": offset, "write": 0}


def operation(op, value):
    return write(OPERATION, OPERATION_FORMAT.pack(op=op, value=value))


def run(accesses, results, mode="none"):
    """Answers, operations that went out, and all their cycles; ``results`` as (done, error)."""
    dut, found = BarrierWindow(PARAMS), {"asked": []}
    stalls = STALL_MODES[mode]

    async def source(ctx):
        found["in"] = await send(ctx, dut.accesses.requests, accesses, idle=stalls["idle"], seed=SEED)

    async def answers(ctx):
        got, found["out"] = await receive(ctx, dut.accesses.answers, len(accesses), stall=stalls["stall"], seed=SEED)
        found["answers"] = [(answer.data, answer.error) for answer in got]

    async def memory(ctx):
        """Answers two cycles after an operation, as the barrier unit does."""
        rng = random.Random(SEED)
        for done, error in results:
            (asked,), _ = await receive(ctx, dut.barriers, 1, stall=stalls["stall"], seed=rng.randrange(1 << 16))
            found["asked"].append((asked.op, asked.address, asked.value))
            await ctx.tick()
            await send(ctx, dut.barrier_results, [{"done": done, "error": error}])

    simulate(dut, source, answers, memory, background=[watch_stream(dut.barriers), watch_stream(dut.accesses.answers)])
    return found


@pytest.mark.parametrize("mode", STALL_MODES)
def test_operations(mode):
    """Each goes out as it was written, of the barrier that was named last, and its answer is read behind it."""
    rng = random.Random(SEED)
    asked = [(rng.choice(list(BarrierOp)), 8 * rng.randrange(128), rng.getrandbits(21)) for _ in range(8)]
    results = [(rng.getrandbits(1), rng.getrandbits(1)) for _ in asked]
    accesses = []
    for op, address, value in asked:
        accesses += [write(ADDRESS, address), operation(op, value), read(RESULT)]
    found = run(accesses, results, mode)
    assert found["asked"] == asked
    assert [data for data, _ in found["answers"][2::3]] == [done | error << 1 for done, error in results]
    assert not any(error for _, error in found["answers"])


def test_the_address_stays():
    found = run([write(ADDRESS, 64), *[operation(BarrierOp.TRY_WAIT, 1)] * 2], [(0, 0), (1, 0)])
    assert found["asked"] == [(BarrierOp.TRY_WAIT, 64, 1)] * 2


def test_what_is_refused_does_nothing():
    refused = [read(ADDRESS), read(OPERATION), write(RESULT, 3), write(12), read(12)]
    found = run([*refused, read(RESULT)], [])
    assert [error for _, error in found["answers"]] == [1] * 5 + [0]
    assert found["answers"][-1] == (0, 0) and not found["asked"]


def test_latency():
    """An access is answered after one cycle, and an operation one cycle after its own answer."""
    found = run([write(ADDRESS, 8), operation(BarrierOp.ARRIVE, 1), read(RESULT)], [(1, 0)])
    assert found["in"] == [0, 2, 7]
    assert found["out"] == [1, 6, 8]
