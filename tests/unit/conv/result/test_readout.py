"""The read-out: which accumulators are read, with what; tiles, passes and groups released; what it waits for."""

import random
from collections import deque

import pytest
from amaranth.hdl import Value

from support.conv import conv_units
from support.selection import grid
from support.streams import pulse
from tilewright.hw.conv.result.layouts import ResultSizes
from tilewright.hw.conv.result.readout import ReadOut
from tilewright.spec.conv import ConvOutput
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, send

PARAMS = conv_units("unit", "pairs")
#: lanes, granularity, result_log2, bias, add.
MODES = [(0, 4, 0, 1, 0), (0, 3, 2, 0, 0), (1, 4, 0, 0, 1), (1, 1, 2, 1, 0), (1, 2, 0, 1, 1)]
CONSTANT = 0x1234


def some_work(params, plan, count):
    """Places of groups, and of each transfer (t, index, part, flush, the group's number, its step)."""
    conv, sizes, rng = params.conv, ResultSizes(params), random.Random(4)
    span, distinct, ours = sizes.pass_channels, min(conv.results, conv.slaves), conv.results // sizes.together
    fold, together, parts = conv.row_bytes >> plan["granularity"], sizes.together, max(1, conv.slaves // conv.results)
    if plan["lanes"]:
        span, distinct, ours = 1 << plan["granularity"], conv.results, conv.results
        together = max(1, conv.results // span)
    full = max(1, sizes.piece_bytes // (ours << plan["result_log2"]))
    tile_places = (conv.slaves if plan["lanes"] else conv.units) * fold
    places, transfers, number = [], [], 0
    for tile in range(count):
        channels, surplus = rng.randint(1, span), rng.choice([0, 0, rng.randrange(tile_places)])
        for place in range(tile_places):
            last = place == tile_places - 1
            there = place < tile_places - surplus
            first = place - place % together
            some = first < tile_places - surplus
            ends = place % together == together - 1 or last
            places.append({"there": there, "any": some, "channels": channels - 1, "place": place, "group_last": ends,
                           "tile_last": last, "pass_last": last and tile % 3 == 2})  # fmt: skip
            if not (ends and some):
                continue
            steps = range(-(-channels // distinct))
            for step in steps:
                flush = step == steps[-1] or step % full == full - 1
                if plan["lanes"]:
                    slave, within = divmod(first, fold)
                    where = 0, (within * span & -conv.results) + step * conv.results, slave
                else:
                    where = step // parts, first, step % parts
                transfers.append((*where, flush, number % 16, step, tile))
            number += 1
    return places, transfers


def run(name, mode, plan, count, *, hold=0):
    """Reads of a plan; post-processing is a queue of 12 cycles."""
    dut, stalls, rng = elaborated(ReadOut, PARAMS[name]), STALL_MODES[mode], random.Random(8)
    places, transfers = some_work(PARAMS[name], plan, count)
    released, taken, came, reads, begun, lefts = [], [], [], [], [], deque([0] * 12)

    async def source(ctx):
        ctx.set(dut.plan, plan)
        await pulse(ctx, dut.start)
        await send(ctx, dut.i, places, idle=stalls["idle"])

    async def tiles(ctx):
        banks = [tile % PARAMS[name].accumulator_banks for tile in range(count)]
        taken.extend(await send(ctx, dut.tiles, banks, idle=stalls["idle"], seed=1))

    async def around(ctx):
        """What was read at any time, a table and addends that tell their rows, and a place that becomes free."""
        acc, cycle = deque([0, 0]), 0
        ticks = ctx.tick().sample(Value.cast(dut.read), dut.flushes.i.valid, dut.o.valid, Value.cast(dut.o.p.acc[0]),
                                  dut.o.p.scale[0], dut.o.p.addend[0], dut.flush.p, dut.table_release,
                                  dut.addend_release)  # fmt: skip
        before = 0
        async for _, _, bits, begins, valid, result, scale, addend, flush, *release in ticks:
            if before:
                reads.append(bits)
            before = begins
            if begins:
                begun.append(cycle)
            if valid:
                came.append((result, scale, addend, flush))
            released.append(release)
            ctx.set(dut.flush.ready, 0)
            lefts.append(valid)
            acc.append(bits)
            ctx.set(dut.acc[0], acc.popleft())
            ctx.set(dut.bias[0], CONSTANT)
            ctx.set(dut.scale[0], ctx.get(dut.table_row))
            ctx.set(dut.addend[0], ctx.get(dut.addend_group) << 4 | ctx.get(dut.addend_step))
            ctx.set(dut.departed, cycle >= hold and lefts.popleft())
            ctx.set(dut.flush.ready, ctx.get(dut.o.valid))
            for loaded in (dut.table_loaded, dut.addend_loaded):
                ctx.set(loaded, rng.random() >= stalls["stall"])
            cycle += 1

    async def done(ctx):
        await ctx.tick().repeat(5)
        while len(came) < len(transfers) or len(taken) < count or not ctx.get(dut.idle):
            await ctx.tick()

    simulate(dut, source, tiles, done, background=[around])
    return transfers, reads, came, released, begun


@grid(lambda name, mode: name == "unit" or mode == "both", name=PARAMS, mode=STALL_MODES)
@pytest.mark.parametrize(("lanes", "granularity", "log2", "bias", "add"), MODES)
def test_transfers(name, mode, lanes, granularity, log2, bias, add):
    post = {"output": ConvOutput.U8 if log2 == 0 else ConvOutput.RAW, "add": add}
    plan = {"lanes": lanes, "granularity": granularity, "result_log2": log2, "bias": bias, "table": 1, "post": post}
    transfers, reads, came, released, _ = run(name, mode, plan, 7)
    layout, conv = elaborated(ReadOut, PARAMS[name]).read.shape(), PARAMS[name].conv
    assert conv.results <= 4 and len(reads) == len(transfers)
    row = 1 << (2 * ResultSizes(PARAMS[name]).steps - 1).bit_length() - 1
    for bits, result, (t, index, part, flush, group, step, tile) in zip(reads, came, transfers, strict=True):
        wanted = {"bank": tile % PARAMS[name].accumulator_banks, "t": t, "index": index, "part": part}
        assert layout.from_bits(bits) == layout.const(wanted)
        assert result[0] == bits + (CONSTANT if bias else 0)
        assert result[1] == tile // 3 % 2 * row + step and result[3] == flush
        if add:
            assert result[2] == group << 4 | step
    table, addends = (sum(each) for each in zip(*released, strict=True))
    assert table == 2 and addends == (len({(each[4], each[6]) for each in transfers}) if add else 0)


def test_full_rate_and_places():
    """A transfer a cycle, over ends of tiles; 32 are under way while none leaves."""
    plan = {"lanes": 0, "granularity": 4, "result_log2": 0, "table": 1, "post": {"output": ConvOutput.U8}}
    transfers, *_, begun = run("unit", "none", plan, 12, hold=100)
    assert begun[:32] == list(range(begun[0], begun[0] + 32))
    assert len(transfers) > 32 and begun[32] > 100
