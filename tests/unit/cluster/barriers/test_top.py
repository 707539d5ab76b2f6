"""All cores operate on barriers of each other at once: memories, results and refusals against golden."""

import random

import numpy as np
import pytest

from tilewright.golden import Cluster, Memory, Windows
from tilewright.golden.smem.barrier import Barrier
from tilewright.golden.spec import BarrierOp
from tilewright.hw.cluster.barriers.top import BarrierNetwork
from tilewright.hw.smem.params import SmemParams
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.pysim.streams import STALL_MODES, receive, send

SEED = 20261124
CORES, BARRIERS, OPERATIONS = 3, 4, 40
SMEM = SmemParams(1024)
ALL = (1 << CORES) - 1
#: Of each core: whom it reaches and accepts, and its window: lines.
OPEN = [(ALL, ALL, None), (ALL, 0b110, None), (0b101, ALL, (0, 0))]


def network():
    return BarrierNetwork(SMEM, CORES)


def golden():
    cluster = Cluster(Memory(bytes(1024)), [np.zeros(SMEM.size_bytes, np.uint8) for _ in range(CORES)])
    for core, (reach, accepts, window) in zip(cluster.cores, OPEN, strict=True):
        core.reach, core.accepts = reach, accepts
        core.windows = Windows(shared=window and (128 * window[0], 128 * window[1] + 127))
        for number in range(BARRIERS):
            Barrier(pending=1000, expected=1000).write(core.smem, 64 * number)
    return cluster


def random_operation(rng, number):
    """Of core ``number``, of any kind on any core's barrier; what they do to a barrier has no order."""
    op = rng.choice([BarrierOp.ARRIVE] * 4 + [BarrierOp.EXPECT_TX, BarrierOp.TRY_WAIT])
    value = 0 if op == BarrierOp.TRY_WAIT else rng.choice([0, 1, 2, 5])
    request = {"op": op, "address": 64 * rng.randrange(BARRIERS), "value": value}
    if rng.random() < 0.3:
        return request
    request |= {"remote": 1, "core": rng.randrange(CORES)}
    return request | ({"address": rng.randrange(256) | 1} if request["core"] != number and rng.random() < 0.2 else {})


@pytest.mark.parametrize("mode", STALL_MODES)
def test_against_golden(mode):
    dut, stalls, rng, cluster = elaborated(network), STALL_MODES[mode], random.Random(SEED), golden()
    print(f"seed {SEED}")
    operations = [[random_operation(rng, number) for _ in range(OPERATIONS)] for number in range(CORES)]
    memories = [core.smem.copy() for core in cluster.cores]
    wanted, own_errors = [[] for _ in range(CORES)], [0] * CORES
    for number, listed in enumerate(operations):
        for one in listed:
            of = one["core"] if one.get("remote") else number
            done = cluster.barrier(number, one["op"], one["address"], one["value"], of=of)
            wanted[number].append((bool(done), done is None))
    results, refused = [[] for _ in range(CORES)], [[] for _ in range(CORES)]

    def processor(number):
        async def requests(ctx):
            for core, (reach, accepts, window) in enumerate(OPEN):
                lines = {"confine": 1, "first": window[0], "last": window[1]} if window else {}
                ctx.set(dut.acceptance[core], {"cores": accepts | 1 << core, **lines})
                ctx.set(dut.reach[core], reach | 1 << core)
            await send(ctx, dut.requests[number], operations[number], idle=stalls["idle"], seed=number)

        async def answers(ctx):
            got, _ = await receive(ctx, dut.results[number], OPERATIONS, stall=stalls["stall"], seed=number)
            results[number].extend((answer.done, answer.error) for answer in got)
            await ctx.tick().repeat(20)

        return requests, answers

    def core(number):
        async def barriers(ctx):
            for seed in range(1 << 20):
                (one,), _ = await receive(ctx, dut.barriers[number], 1, stall=stalls["stall"], seed=seed)
                barrier = Barrier.read(memories[number], one.address & ~7)
                done, error = False, bool(one.address & 7)
                try:
                    done = not error and barrier.apply(BarrierOp(one.op), one.value)
                except ValueError:
                    error = True
                if not error:
                    barrier.write(memories[number], one.address)
                own_errors[number] += error
                await send(ctx, dut.barrier_results[number], [{"done": done, "error": error}])

        async def listen(ctx):
            rng = random.Random(number)
            while True:
                ctx.set(dut.recorded[number], rng.random() >= stalls["stall"])
                event = dut.refused[number]
                _, _, recorded, address = await ctx.tick().sample(event.valid & dut.recorded[number], event.address)
                refused[number].extend([address] * recorded)

        return barriers, listen

    processes = [process for number in range(CORES) for process in processor(number)]
    simulate(dut, *processes, background=[process for number in range(CORES) for process in core(number)])
    assert results == wanted
    for number, model in enumerate(cluster.cores):
        assert (memories[number] == model.smem).all()
        assert len(refused[number]) + own_errors[number] == len(model.errors)
    assert all(refused)
