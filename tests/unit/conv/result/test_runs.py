"""The run cutter: the pieces of every mode, their addresses and their order; stalls, rate, latency."""

import random

import pytest

from support.conv import conv_units
from support.streams import transact
from tilewright.hw.conv.result.layouts import ResultSizes
from tilewright.hw.conv.result.runs import RunCutter
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, receive, send

PARAMS = conv_units("unit", "pairs", "default", "as-many", smem=1024)
#: lanes, wide, log2 of pci by M, result_log2.
MODES = [(0, 0, 0, 0), (0, 0, 0, 2), (1, 0, 0, 0), (1, 0, 0, 2), (1, 0, 2, 0), (1, 0, 2, 2), (1, 0, 4, 0), (1, 1, 1, 1),
         (1, 0, 1, 2)]  # fmt: skip


def some_work(params, plan, count):
    """Places, and the pieces of their runs: addresses, places in the buffer, bytes, and whether the flush ends.

    Of two places that come together the second one is ``y.point`` farther, and has a piece with the first if both are
    short.
    """
    conv, sizes, rng = params.conv, ResultSizes(params), random.Random(9)
    eo, width = 1 << plan["result_log2"], sizes.piece_bytes
    span, together, stride = sizes.pass_channels, sizes.together, width
    if plan["lanes"]:
        span = (1 << plan["granularity"]) >> plan["wide"]
        together = max(1, min(conv.results, conv.row_bytes >> plan["wide"]) // span)
        stride = span * eo
    places, pieces = [], []
    for _ in range(count):
        half = max(1, width // 2 // eo)  # as many results as two of a write have each, and one more
        channels = rng.choice([rng.randint(1, span), *(min(some, span) for some in (half, half + 1, width // eo + 1))])
        there = rng.randint(0, together)
        addresses, pairs = [rng.randrange(1024) for _ in range(together)], set()
        for number in range(0, together - 1, 2):
            if sizes.pairs and number + 1 != there and rng.random() < 0.8:
                pairs.add(number)
                addresses[number + 1] = (addresses[number] + plan["y"]["point"]) % 1024
        for number, y in enumerate(addresses):
            if number - 1 not in pairs:
                last = number + (number in pairs) == together - 1
                both = {"both": number in pairs} if sizes.pairs else {}
                places.append({"there": number < there, "any": there > 0, "y": y, "channels": channels - 1,
                               "group_last": last} | both)  # fmt: skip
        segments = range(0, channels * eo, width)
        # What a flush holds of a run, where it is not all of the group.
        most = width if not plan["lanes"] else max(conv.results * eo, width) if span >= conv.results else 1 << 20
        cut = [(at, place) for place in range(there) for at in segments]
        for at, place in cut if plan["lanes"] else sorted(cut):
            end = min(at + width, channels * eo)
            short = end - at <= width // 2 and not (plan["lanes"] and at)
            if short and place - 1 in pairs:
                continue  # with the one before
            both = [place, place + 1] if short and place in pairs else [place]
            last = both[-1] == there - 1 and (end == channels * eo or end % most == 0)
            where = [((addresses[one] + at) % 1024, one * stride + at % most) for one in both]
            pieces.append((where, end - at, last))
    return places, pieces


def begin(half, count):
    """Address and place in the buffer of the first byte of a piece of so many."""
    start = half.first - half.origin % 16
    assert half.last - half.first == count - 1
    return (half.origin + start) % 1024, 16 * half.slot + start


def run(name, plan, mode="none", count=40):
    dut, sizes = elaborated(RunCutter, PARAMS[name]), ResultSizes(PARAMS[name])
    plan = plan | {"y": {"point": 333}}
    places, pieces = some_work(PARAMS[name], plan, count)
    payloads, cycles = transact(dut, {"i": places}, {"o": len(pieces)}, mode, inputs={"plan": plan})
    for piece, (where, count, last) in zip(payloads["o"], pieces, strict=True):
        assert [begin(half, count) for half in [piece, *([piece.second] if len(where) > 1 else [])]] == where, plan
        assert (piece.bytes, piece.flush_last) == (count - 1, last), plan
        if not sizes.pairs:
            continue
        assert piece.second.there == len(where) - 1, plan
        if count > sizes.piece_bytes // 2:  # the second half is what follows
            assert piece.second.origin == (piece.origin + sizes.piece_bytes // 2) % 1024, plan
            assert piece.second.slot == piece.slot + sizes.piece_bytes // 32, plan
    return cycles["i"], cycles["o"]


@pytest.mark.parametrize("mode", STALL_MODES)
@pytest.mark.parametrize("name", PARAMS)
def test_pieces(name, mode):
    row = PARAMS[name].conv.row_bytes.bit_length() - 1
    for lanes, wide, less, log2 in MODES:
        if not wide or "i16" in PARAMS[name].conv.types:
            run(name, {"lanes": lanes, "wide": wide, "granularity": row - less, "result_log2": log2}, mode, 15)


def test_full_rate_and_latency():
    plan = {"lanes": 1, "wide": 0, "granularity": 4, "result_log2": 0}
    places, _ = some_work(PARAMS["unit"], plan, 40)
    sent, came = run("unit", plan)
    assert sent == list(range(40))
    assert came == [cycle + 3 for cycle, place in zip(sent, places, strict=True) if place["there"]]


def test_idle():
    dut, plan = elaborated(RunCutter, PARAMS["unit"]), {"lanes": 1, "granularity": 4}
    places, pieces = some_work(PARAMS["unit"], plan | {"wide": 0, "result_log2": 0}, 3)

    async def bench(ctx):
        ctx.set(dut.plan, plan)
        assert ctx.get(dut.idle)
        await send(ctx, dut.i, places)
        assert not ctx.get(dut.idle)
        await receive(ctx, dut.o, len(pieces))
        assert ctx.get(dut.idle)

    simulate(dut, bench)
