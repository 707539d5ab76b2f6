"""Barrier operations between cores: caller and gate alone, and the network of all against the golden model."""

import random

import numpy as np
import pytest

from tilewright.golden import Cluster, Memory, Windows
from tilewright.golden.smem import Barrier
from tilewright.hw.cluster.barriers import BarrierGate, BarrierNetwork, RemoteCaller
from tilewright.hw.smem.params import SmemParams
from tilewright.spec import BarrierOp
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, receive, send, sender, watch_stream

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

    async def barriers(ctx):
        got, cycles = await receive(ctx, dut.barriers, 6)
        assert [request.address for request in got] == [8 * k for k in range(6)]
        assert cycles == [*range(1, 7)]

    simulate(
        dut, sender(dut.requests, [{"op": BarrierOp.ARRIVE, "address": 8 * k, "value": 1} for k in range(6)]), barriers
    )


GATE_CORES, GATE_OWN = 3, 0
ACCEPTANCE = {"cores": 0b011, "confine": 1, "first": 2, "last": 5}


def gate():
    return BarrierGate(SMEM, GATE_CORES)


def is_open(core, address):
    return core == 1 and 256 <= address < 768 and address % 8 == 0


def run(own, calls, mode="none"):
    """Operations at the barriers, results of own ones, and answers to the calls of each core."""
    dut, stalls = elaborated(gate), STALL_MODES[mode]
    seen, results, answers = [], [], [[] for _ in range(GATE_CORES)]

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

    cores = [core(number) for number in range(GATE_CORES) if calls[number]]
    simulate(dut, processor, listener, *cores, background=[barriers, watch_stream(dut.barriers)])
    return seen, results, answers


@pytest.mark.parametrize("mode", STALL_MODES)
def test_gate_against_model(mode):
    rng = random.Random(SEED)
    print(f"seed {SEED}")
    own = [{"op": rng.randrange(5), "address": 8 * k, "value": rng.randrange(8)} for k in range(30)]
    calls = [[], *([{"address": rng.choice([rng.randrange(1024), 8 * rng.randrange(128)]), "value": rng.randrange(8)}
                    for _ in range(25)] for _ in range(2))]  # fmt: skip
    seen, results, answers = run(own, calls, mode)
    assert results == [(one["value"] & 1, one["value"] >> 1 & 1) for one in own]
    let = [call for core in range(GATE_CORES) for call in calls[core] if is_open(core, call["address"])]
    assert sorted(seen) == sorted(
        [(one["op"], one["address"], one["value"]) for one in own]
        + [(BarrierOp.ARRIVE, call["address"], call["value"]) for call in let]
    )
    for core in range(GATE_CORES):
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
    return request | ({"address": rng.randrange(256) | 1} if request["core"] != number and rng.random() < 0.2 else {})


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
    results, refused = [[] for _ in range(TOP_CORES)], [[] for _ in range(TOP_CORES)]

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

    processes = [process for number in range(TOP_CORES) for process in processor(number)]
    simulate(dut, *processes, background=[process for number in range(TOP_CORES) for process in core(number)])
    assert results == wanted
    for number, model in enumerate(cluster.cores):
        assert (memories[number] == model.smem).all()
        assert len(refused[number]) + own_errors[number] == len(model.errors)
    assert all(refused)
