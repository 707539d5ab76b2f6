"""How fast copies leave; that no job leaves too early is proved in tests/formal/tmau/test_exchange.py."""

from tilewright.hw.tmau.exchange import Exchange
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.spec import Reduction
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import send

PARAMS = TMAU_PRESETS["unit"]


def copy(tag, size, *, loop, target=0x400, quiet=0):
    """A copy within one memory, as block setup makes it: its first job, whole."""
    return {"tag": tag, "smem": 0x100 if loop else 0, "loop": loop, "stage": not loop, "quiet": quiet, "signal": 1,
            "reduction": Reduction.ADD, "bytes": size, "size": size, "store": loop, "address": 0 if loop else 0x2000,
            "target": target}  # fmt: skip


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
