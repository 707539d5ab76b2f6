"""Lines are written, ends counted or refused, and acknowledged when the barrier has its bytes."""

import pytest

from tilewright.golden.spec import BLOCK, COMMAND, COMMAND_FIELD
from tilewright.hw.cluster.network.landing import Landing
from tilewright.hw.smem.params import SmemParams
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.pysim.streams import STALL_MODES, receive, send, watch_stream

CORES = 2
SMEM = SmemParams(1024)
END = {"tag": 9, "signal": 1, "barrier": 0x48, "bytes": 77}


def landing():
    return Landing(SMEM, CORES)


def land(arrivals, counted, mode="none"):
    """Sends arrivals of core 1; rows written, what barriers counted, acknowledgements, refusals, bytes received."""
    dut, stalls = elaborated(landing), STALL_MODES[mode]
    rows, landed, acks, refusals, received = [], [], [], [], []
    lines = sum("end" not in arrival["packet"] for arrival in arrivals)

    async def source(ctx):
        await send(ctx, dut.arrivals, [arrival | {"sender": 0b10} for arrival in arrivals], idle=stalls["idle"])
        await ctx.tick().repeat(12)

    async def write(ctx):
        rows.extend(line["row"] for line in (await receive(ctx, dut.writes, lines, stall=stalls["stall"]))[0])

    async def count(ctx):
        landed.extend((await receive(ctx, dut.landed, counted, stall=stalls["stall"]))[0])

    async def watch(ctx):
        async for _, _, own, other, refusal, bytes_ in ctx.tick().sample(*dut.acks, dut.refusal, dut.received):
            assert not own.valid
            if other.valid:
                acks.append(other.refused)
            if refusal.valid:
                refusals.append((refusal.tag, refusal.field))
            if bytes_:
                received.append(bytes_)

    simulate(dut, source, write, count, background=[watch, watch_stream(dut.landed), watch_stream(dut.writes)])
    return rows, [(item["barrier"], item["bytes"]) for item in landed], acks, refusals, received


def end(**others):
    flags = {name: others.pop(name) for name in ("dropped", "astray") if name in others}
    return {"packet": {"ends": 1, "end": END | others}} | flags


def line(row):
    return {"packet": {"change": {"row": row}}}


@pytest.mark.parametrize("mode", STALL_MODES)
def test_lines_and_ends(mode):
    arrivals = [line(3), end(), line(4), end(signal=0, bytes=5), line(5), end(tag=10, bytes=6)]
    counted = [(0x48, 77), (0x48, 6)]
    assert land(arrivals, 2, mode) == ([3, 4, 5], counted, [0, 0, 0], [], [77, 5, 6])


@pytest.mark.parametrize(
    ("flags", "fmt", "field"),
    [
        ({"dropped": 1}, COMMAND, "smem"),
        ({"dropped": 1, "astray": 1, "block": 1}, BLOCK, "destination"),
        ({"astray": 1}, COMMAND, "barrier"),
        ({"astray": 1, "block": 1}, BLOCK, "barrier"),
    ],
)
def test_refusals(flags, fmt, field):
    """Nothing is counted, and the next transfer is."""
    refusal = (9, COMMAND_FIELD + fmt.index(field))
    assert land([end(**flags), end()], 1) == ([], [(0x48, 77)], [1, 0], [refusal], [77])


def test_a_bus_error_is_the_issuers_alone():
    assert land([end(failed=1), end(failed=1, dropped=1)], 0) == ([], [], [0, 0], [], [])
