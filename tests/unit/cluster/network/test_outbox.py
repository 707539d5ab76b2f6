"""Outbox and lender: lines go to all receivers, and cores read the lines that are open to them."""

import random

import pytest

from tilewright.hw.cluster.network.outbox import Lender, Outbox
from tilewright.hw.smem.params import SmemParams
from tilewright.spec import BLOCK, COMMAND_FIELD
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, send, watch_stream

CORES, OWN = 3, 1
SMEM = SmemParams(1024)


def outbox():
    return Outbox(SMEM, CORES, OWN)


def deliver(masks, free=lambda core, cycle: True):
    """Sends a line for each mask; of each core the rows that it took with the cycles, and the cycles of acceptance."""
    dut, taken, result = elaborated(outbox), [[] for _ in range(CORES)], {}

    async def source(ctx):
        lines = [{"row": row, "receivers": mask} for row, mask in enumerate(masks)]
        result["accepted"] = await send(ctx, dut.writes, lines)
        await ctx.tick().repeat(12)

    async def sinks(ctx):
        cycle = 0
        while True:
            for core, port in enumerate(dut.packets):
                ctx.set(port.ready, free(core, cycle))
            values = [value for port in dut.packets for value in (port.valid & port.ready, port.payload.change.row)]
            _, _, *seen = await anext(aiter(ctx.tick().sample(*values)))
            for core in range(CORES):
                if seen[2 * core]:
                    taken[core].append((seen[2 * core + 1], cycle))
            cycle += 1

    simulate(dut, source, background=[sinks, *(watch_stream(port) for port in dut.packets)])
    return taken, result["accepted"]


def test_all_receivers_take_the_cycles_of_one():
    (first, second, third), accepted = deliver([0b111] * 6)
    assert accepted == list(range(6))
    assert first == second == third == [(row, row + 1) for row in range(6)]


SEED = 20261124
LENDER_CORES = 3
LINES = [random.Random(row).getrandbits(1024) | 1 for row in range(SMEM.rows)]
ACCEPTANCE = {"cores": 0b101, "confine": 1, "first": 1, "last": 6}


def lender():
    return Lender(SMEM, LENDER_CORES)


def granted(core, request):
    first, last = ACCEPTANCE["first"], ACCEPTANCE["last"]
    return bool(ACCEPTANCE["cores"] >> core & 1) and first <= request["row"] and request["last"] <= last


def random_request(rng, tag):
    row = rng.randrange(SMEM.rows)
    asks = rng.random() < 0.4
    return {"asks": asks, "row": row, "last": rng.randrange(row, SMEM.rows) if asks else row, "tag": tag}


def run(requests, mode="none"):
    """Answers to each core, with their cycle; tags and fields of refusals."""
    dut, stalls = elaborated(lender), STALL_MODES[mode]
    came, refusals = [[] for _ in range(LENDER_CORES)], []

    def source(core):
        async def process(ctx):
            ctx.set(dut.acceptance, ACCEPTANCE)
            await send(ctx, dut.requests[core], requests[core], idle=stalls["idle"], seed=core)
            while len(came[core]) < len(requests[core]):
                await ctx.tick()
            await ctx.tick().repeat(40)

        return process

    async def memory(ctx):
        rng, rows = random.Random(SEED), dut.fetch.rows
        while True:
            ctx.set(rows.ready, rng.random() >= stalls["stall"])
            _, _, taken, row = await ctx.tick().sample(rows.valid & rows.ready, rows.payload)
            ctx.set(dut.fetch.line, LINES[row] if taken else rng.getrandbits(1024))

    async def listen(ctx):
        rng, cycle = random.Random(SEED), 0
        while True:
            ctx.set(dut.recorded, rng.random() >= stalls["stall"])
            sampled = ctx.tick().sample(dut.refusal, dut.recorded, *dut.answers)
            _, _, refusal, recorded, *answers = await sampled
            for core, answer in enumerate(answers):
                if answer.answers or answer.lends:
                    came[core].append((cycle, answer.lends, answer.granted if answer.answers else answer.line))
            if refusal.valid and recorded:
                refusals.append((refusal.tag, refusal.field))
            cycle += 1

    sources = [source(core) for core in range(LENDER_CORES) if requests[core]]
    simulate(dut, *sources, background=[memory, listen, watch_stream(dut.fetch.rows)])
    return came, refusals


@pytest.mark.parametrize("mode", STALL_MODES)
def test_every_request_is_answered(mode):
    rng = random.Random(SEED)
    print(f"seed {SEED}")
    requests = [[random_request(rng, 100 * core + k) for k in range(40)] for core in range(LENDER_CORES)]
    came, refusals = run(requests, mode)
    for core, (answers, wanted) in enumerate(zip(came, requests, strict=True)):
        for (_, lends, said), request in zip(answers, wanted, strict=True):
            may = granted(core, request)
            assert lends == (not request["asks"])
            assert said == (may if request["asks"] else LINES[request["row"]] if may else 0)
    field = COMMAND_FIELD + BLOCK.index("source")
    refused = [(request["tag"], field) for core in range(LENDER_CORES) for request in requests[core]
               if request["asks"] and not granted(core, request)]  # fmt: skip
    assert sorted(refusals) == sorted(refused) and len(refused) > LENDER_CORES


def test_latency_three_and_full_rate():
    came, _ = run([[{"row": 1 + k % 4, "last": 1 + k % 4} for k in range(12)], [], []])
    assert [cycle for cycle, *_ in came[0]] == [*range(3, 15)]
