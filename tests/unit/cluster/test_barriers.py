"""Barrier operations between cores: caller and gate alone, and the network of all against the golden model."""

import random

import numpy as np
import pytest

from support.streams import transact
from tilewright.golden import Cluster, Memory, Windows
from tilewright.golden.smem import Barrier
from tilewright.hw.cluster.barriers import BarrierGate, BarrierNetwork, RemoteCaller
from tilewright.hw.smem.params import SmemParams
from tilewright.spec import BarrierOp
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, receive, send

SEED = 20261124
CORES, OWN = 3, 1
SMEM = SmemParams(1024)


def caller():
    return RemoteCaller(SMEM, CORES, OWN)


def test_own_operations_one_a_cycle_after_one_cycle():
    requests = [{"op": BarrierOp.ARRIVE, "address": 8 * k, "value": 1} for k in range(6)]
    came, cycles = transact(elaborated(caller), {"requests": requests}, {"barriers": 6})
    assert [request.address for request in came["barriers"]] == [8 * k for k in range(6)]
    assert cycles["barriers"] == [*range(1, 7)]


GATE_CORES = 3
ACCEPTANCE = {"cores": 0b011, "confine": 1, "first": 2, "last": 5}


def gate():
    return BarrierGate(SMEM, GATE_CORES)


def test_latency_of_a_call():
    """Two registers to the barrier; its result goes through two."""
    dut, cycles = elaborated(gate), {}

    async def process(ctx):
        ctx.set(dut.acceptance, ACCEPTANCE)
        ctx.set(dut.barriers.ready, 1)
        ctx.set(dut.calls[1].payload, {"address": 256, "value": 1})
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


TOP_CORES, BARRIERS, OPERATIONS = 3, 4, 40
ALL = (1 << TOP_CORES) - 1
#: Of each core: whom it reaches and accepts, and its window: lines.
OPEN = [(ALL, ALL, None), (ALL, 0b110, None), (0b101, ALL, (0, 0))]


def network():
    return BarrierNetwork(SMEM, TOP_CORES)


def golden():
    cluster = Cluster(Memory(bytes(1024)), [np.zeros(SMEM.size_bytes, np.uint8) for _ in range(TOP_CORES)])
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
    request |= {"remote": 1, "core": rng.randrange(TOP_CORES)}
    return request | ({"address": rng.randrange(128) | 1} if request["core"] != number and rng.random() < 0.3 else {})


@pytest.mark.parametrize("mode", STALL_MODES)
def test_against_golden(mode):
    dut, stalls, rng, cluster = elaborated(network), STALL_MODES[mode], random.Random(SEED), golden()
    print(f"seed {SEED}")
    operations = [[random_operation(rng, number) for _ in range(OPERATIONS)] for number in range(TOP_CORES)]
    memories = [core.smem.copy() for core in cluster.cores]
    wanted, own_errors = [[] for _ in range(TOP_CORES)], [0] * TOP_CORES
    for number, listed in enumerate(operations):
        for one in listed:
            of = one["core"] if one.get("remote") else number
            done = cluster.barrier(number, one["op"], one["address"], one["value"], of=of)
            wanted[number].append((bool(done), done is None))
    refused, inputs = [[] for _ in range(TOP_CORES)], {}
    for number, (reach, accepts, window) in enumerate(OPEN):
        lines = {"confine": 1, "first": window[0], "last": window[1]} if window else {}
        inputs |= {f"acceptance.{number}": {"cores": accepts | 1 << number, **lines},
                   f"reach.{number}": reach | 1 << number}  # fmt: skip

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

    came, _ = transact(
        dut, {f"requests.{number}": listed for number, listed in enumerate(operations)},
        {f"results.{number}": OPERATIONS for number in range(TOP_CORES)}, mode, inputs=inputs, settle=20,
        background=[process for number in range(TOP_CORES) for process in core(number)],
    )  # fmt: skip
    results = [came[f"results.{number}"] for number in range(TOP_CORES)]
    assert [[(answer.done, answer.error) for answer in mine] for mine in results] == wanted
    for number, model in enumerate(cluster.cores):
        assert (memories[number] == model.smem).all()
        assert len(refused[number]) + own_errors[number] == len(model.errors)
    assert all(refused)
