"""Barrier arithmetic: the hardware against the golden barrier, at the edges of every count."""

import random

import pytest
from amaranth.hdl import Module

from tilewright.golden.smem.barrier import Barrier
from tilewright.golden.spec import BarrierOp
from tilewright.hw.smem.barrier_rules import BarrierDecode, BarrierSums, BarrierUpdate
from tilewright.hw.smem.params import SmemParams
from tilewright.sim.pysim.ports import set_together
from tilewright.sim.pysim.simulate import simulate

SEED = 6
OPS = [*BarrierOp, 5, 6, 7]
ARRIVALS = [0, 1, 2, 3, (1 << 20) - 2, (1 << 20) - 1]
TRANSACTIONS = [-(1 << 20), 1 - (1 << 20), -128, -1, 0, 1, 128, (1 << 20) - 2, (1 << 20) - 1]
VALUES = [0, 1, 2, 3, 127, 128, 129, (1 << 20) - 2, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, (1 << 21) - 2, (1 << 21) - 1]


def edge_cases(count):
    rng = random.Random(SEED)
    for _ in range(count):
        expected, transactions = rng.choice(ARRIVALS), rng.choice(TRANSACTIONS)
        pending = rng.choice([expected, *ARRIVALS])
        # Every third value ends a count exactly.
        value = rng.choice([rng.choice(VALUES), pending, abs(transactions)])
        yield Barrier(pending, expected, transactions, rng.getrandbits(1)), rng.choice(OPS), value, rng.random() < 0.05


def together(decode, sums, update):
    m = Module()
    m.submodules.decode, m.submodules.sums, m.submodules.update = decode, sums, update
    m.d.comb += [sums.operation.eq(decode.operation), update.operation.eq(decode.operation), update.sums.eq(sums.sums)]
    return m


async def run(ctx, decode, sums, update, word, op, value, misaligned):
    """(word after, result, flip, changed)"""
    request = {"op": op, "address": 0x48 | misaligned << 1, "value": value}
    set_together(ctx, (decode.request, request), (sums.before, word))
    await ctx.tick()
    return ctx.get(update.after.as_value()), ctx.get(update.result), ctx.get(update.flip), ctx.get(update.changed)


def test_against_golden():
    parts = BarrierDecode(SmemParams(4096)), BarrierSums(), BarrierUpdate()
    seen = set()

    async def check(ctx):
        for barrier, op, value, misaligned in edge_cases(10_000):
            before, phase = barrier.pack(), barrier.phase
            try:
                if misaligned:
                    raise ValueError
                done, error = barrier.apply(op, value), False
            except ValueError:
                done, error = False, True
            flip = op not in (BarrierOp.INIT, BarrierOp.TRY_WAIT) and barrier.phase != phase
            changed = not error and op != BarrierOp.TRY_WAIT
            case = f"{op!r} {value} on {before:#018x}"
            after, result, flipped, was_changed = await run(ctx, *parts, before, op, value, misaligned)
            assert after == barrier.pack(), case
            assert (result.done, result.error, flipped, was_changed) == (done, error, flip, changed), case
            seen.add((int(op), done, error))

    simulate(together(*parts), check, deadline=10_100)
    counts = {(int(op), True, False) for op in BarrierOp if op != BarrierOp.INIT}
    assert counts | {(int(op), False, True) for op in OPS} | {(int(op), False, False) for op in BarrierOp} <= seen


def test_reserved_bits():
    parts = BarrierDecode(SmemParams(4096)), BarrierSums(), BarrierUpdate()
    word = 0xC000_0000_0030_0002

    async def check(ctx):
        after, _, _, _ = await run(ctx, *parts, word, BarrierOp.ARRIVE, 3, False)
        assert after == word  # refused: not a bit changes
        after, _, _, _ = await run(ctx, *parts, word, BarrierOp.ARRIVE, 1, False)
        assert after == 0x0000_0000_0030_0001

    simulate(together(*parts), check)


@pytest.mark.parametrize("op", OPS)
def test_misaligned(op):
    parts = BarrierDecode(SmemParams(4096)), BarrierSums(), BarrierUpdate()

    async def check(ctx):
        _, result, _, _ = await run(ctx, *parts, Barrier(1, 1).pack(), op, 1, True)
        assert result.error

    simulate(together(*parts), check)
