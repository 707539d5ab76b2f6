"""Exchange: jobs pass, copies within one memory are cut, and no job leaves before its data or its space are there."""

import random

import pytest

from tilewright.hw.tmau.exchange import Exchange
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.spec import Reduction
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, receive, send, watch_stream

SEED = 3
PARAMS = TMAU_PRESETS["unit"]
PIECE = PARAMS.exchange_bytes


def copy(tag, size, *, loop, target=0x400, quiet=0):
    """A copy within one memory, as block setup makes it: its first job, whole."""
    return {"tag": tag, "smem": 0x100 if loop else 0, "loop": loop, "stage": not loop, "quiet": quiet, "signal": 1,
            "reduction": Reduction.ADD, "bytes": size, "size": size, "store": loop, "address": 0 if loop else 0x2000,
            "target": target}  # fmt: skip


def pieces(size, *, loop, target=0x400, quiet=0):
    """What must come out: store path, smem, origin, bytes, quiet, reduces; firsts and seconds apart."""
    firsts, seconds = [], []
    for offset in range(0, size, PIECE):
        count = min(PIECE, size - offset)
        last = offset + count == size
        firsts.append((loop, 0x100 + offset if loop else 0, 0 if loop else 0x2000 + offset, count, 1, 0))
        place = (target + offset, 0) if loop else (0, target + offset)
        seconds.append((not loop, *place, count, int(not last or quiet), 1))
    return firsts, seconds


@pytest.mark.parametrize("mode", STALL_MODES)
def test_jobs_in_order_and_never_too_early(mode):
    stall = STALL_MODES[mode]
    rng = random.Random(SEED)
    dut = elaborated(Exchange, PARAMS)
    plan = []
    for tag in range(40):
        kind = rng.choice(["plain", "loop", "stage"])
        plan.append((kind, tag, rng.choice([16, PIECE, PIECE + 16, 3 * PIECE, 16 * rng.randint(1, 60)])))
    jobs = [
        {"tag": tag, "size": size} if kind == "plain" else copy(tag, size, loop=kind == "loop")
        for kind, tag, size in plan
    ]
    depths = dict.fromkeys(("loop", "stage"), PARAMS.exchange_words)
    level, arriving, leaving = ({"loop": 0, "stage": 0} for _ in range(3))
    seen = []

    async def paths(ctx):
        """What first jobs bring comes some time later; what second jobs take is there when they come."""
        await ctx.tick()
        while True:
            for kind, queue in (("loop", dut.loop), ("stage", dut.stage)):
                takes = leaving[kind] > 0 and rng.random() < 0.5
                ctx.set(queue.popped, takes)
                ctx.set(queue.level, level[kind])
                leaving[kind] -= takes
                comes = arriving[kind] > 0 and rng.random() < 0.5
                arriving[kind] -= comes
                level[kind] += comes - takes
                assert 0 <= level[kind] <= depths[kind]
            *_, valid, ready, job = await ctx.tick().sample(dut.o.valid, dut.o.ready, dut.o.payload)
            if valid and ready and (job.loop or job.stage):
                kind = "loop" if job.loop else "stage"
                need = -(-job.size // PARAMS.bus_bytes)
                if job.store == job.loop:  # a first job
                    arriving[kind] += need
                    assert level[kind] + arriving[kind] <= depths[kind]
                else:
                    leaving[kind] += need
                    assert leaving[kind] <= level[kind]

    async def feed(ctx):
        for number, job in enumerate(jobs):
            await send(ctx, dut.i[number & 1], [job], idle=stall["idle"], seed=number)

    async def drain(ctx):
        total = sum(1 if kind == "plain" else 2 * -(-size // PIECE) for kind, _, size in plan)
        payloads, _ = await receive(ctx, dut.o, total, stall=stall["stall"], seed=SEED)
        seen.extend(payloads)

    simulate(dut, feed, drain, background=[paths, watch_stream(dut.o)], deadline=60_000)
    expected_firsts, expected_seconds, plain = [], [], {}
    for kind, tag, size in plan:
        if kind == "plain":
            # Comes when all that was before it has left.
            plain[tag] = len(expected_firsts), len(expected_seconds), size
            continue
        firsts, seconds = pieces(size, loop=int(kind == "loop"))
        expected_firsts += [(tag, *piece) for piece in firsts]
        expected_seconds += [(tag, *piece) for piece in seconds]
    firsts, seconds = [], []
    for job in seen:
        if not job.loop and not job.stage:
            assert plain.pop(job.tag) == (len(firsts), len(seconds), job.size)
            continue
        is_first = job.store == job.loop
        reduces = int(job.reduction != Reduction.NONE)
        piece = (job.tag, job.store, job.smem, job.address, job.size, job.quiet, reduces)
        (firsts if is_first else seconds).append(piece)
        assert job.store == (job.loop if is_first else job.stage)
        assert job.signal == (not is_first)
    assert (firsts, seconds, plain) == (expected_firsts, expected_seconds, {})


def test_small_copies_leave_one_every_fourth_cycle():
    """Their two jobs, as fast as Dispatch takes jobs: first ones run ahead, so that the time that words take to come
    does not count."""
    dut = elaborated(Exchange, PARAMS)
    copies, words_take = 40, 6

    async def feed(ctx):
        await send(ctx, dut.i[0], [copy(tag, 16, loop=1) for tag in range(copies)])

    async def paths(ctx):
        coming, held = [], 0
        while True:
            *_, valid, ready, job = await ctx.tick().sample(dut.o.valid, dut.o.ready, dut.o.payload)
            valid = valid and ready
            coming = [left - 1 for left in coming]
            held += coming.count(0)
            coming = [left for left in coming if left]
            taken = valid and not job.store
            if valid and job.store:
                coming.append(words_take)
            held -= taken
            assert held >= 0
            ctx.set(dut.loop.popped, taken)
            ctx.set(dut.loop.level, held + taken)

    async def drain(ctx):
        left, cycles = 2 * copies, 0
        while left:
            ctx.set(dut.o.ready, cycles & 1)
            cycles += 1
            *_, valid, ready = await ctx.tick().sample(dut.o.valid, dut.o.ready)
            left -= valid and ready
        assert cycles <= 4 * copies + words_take
        await ctx.tick().repeat(2)
        assert not ctx.get(dut.busy)

    simulate(dut, feed, drain, background=[paths])
