"""Inbox, reducer and landing: what a core accepts is written, reduced, counted and acknowledged."""

import random

import numpy as np
import pytest

from tilewright.golden.tmau.reduce import is_legal, reduce
from tilewright.hw.cluster.network.inbox import Inbox, Landing, LineReducer
from tilewright.hw.smem.params import SmemParams
from tilewright.spec import BLOCK, COMMAND, COMMAND_FIELD, LINE_BYTES, Element, Reduction
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, receive, send, sender, set_together, watch_stream

CORES = 2
SMEM = SmemParams(1024)


def inbox():
    return Inbox(SMEM, CORES)


def line(row, turn=0):
    return {"change": {"row": row}, "turn": turn}


def end(tag, turn=0, barrier=None):
    return {"ends": 1, "turn": turn, "end": {"tag": tag, "signal": barrier is not None, "barrier": barrier or 0}}


def arrivals(packets, count, acceptance, mode="none"):
    """What arrives of the packets of core 0: rows, and (tag, dropped, astray)."""
    dut, stalls, came = elaborated(inbox), STALL_MODES[mode], []

    async def source(ctx):
        ctx.set(dut.acceptance, acceptance)
        await send(ctx, dut.packets[0], packets, idle=stalls["idle"])

    async def sink(ctx):
        came.extend((await receive(ctx, dut.arrivals, count, stall=stalls["stall"]))[0])

    simulate(dut, source, sink, background=[watch_stream(dut.arrivals)])
    assert all(arrival["sender"] == 1 for arrival in came)
    return [
        (packet["end"]["tag"], arrival["dropped"], arrival["astray"]) if packet["ends"] else packet["change"]["row"]
        for arrival, packet in ((arrival, arrival["packet"]) for arrival in came)
    ]


@pytest.mark.parametrize("mode", STALL_MODES)
def test_window(mode):
    packets = [line(2), end(1), line(1), line(3), end(2), line(4), end(3, barrier=0x80), end(4, barrier=0x100)]
    wanted = [2, (1, 0, 0), 3, (2, 1, 0), 4, (3, 0, 1), (4, 0, 0)]
    assert arrivals(packets, len(wanted), {"cores": 0b11, "confine": 1, "first": 2, "last": 4}, mode) == wanted


def test_a_sender_that_is_not_accepted():
    assert arrivals([line(2), line(3), end(1)], 1, {"cores": 0b10}) == [(1, 1, 0)]


def test_an_end_behind_lines_of_later_transfers():
    """Found by random commands on four cores: the drop of a line was put down to the transfer before."""
    packets = [line(2), line(1, turn=1), line(5, turn=2), end(1), end(2, turn=1), end(3, turn=2), end(4, turn=1)]
    wanted = [2, 5, (1, 0, 0), (2, 1, 0), (3, 0, 0), (4, 0, 0)]
    assert arrivals(packets, len(wanted), {"cores": 0b11, "confine": 1, "first": 2, "last": 7}) == wanted


def test_senders_take_turns():
    dut = elaborated(inbox)

    came = []

    async def first(ctx):
        ctx.set(dut.acceptance.cores, 0b11)
        await send(ctx, dut.packets[0], [line(row) for row in range(4)])

    async def sink(ctx):
        came.extend((await receive(ctx, dut.arrivals, 8))[0])

    simulate(dut, first, sender(dut.packets[1], [line(row) for row in range(4)]), sink)
    assert [arrival["sender"] for arrival in came] == [1, 2] * 4


SEED = 20261124
LEGAL = [(op, element) for op in Reduction for element in Element if is_legal(op, element)]


def reducer():
    return LineReducer(SMEM, 2, floats=True)


def run(changes, mode="none"):
    """Sends changes of lines; the memory behind, and the cycles in which they left."""
    dut, stalls, result = elaborated(reducer), STALL_MODES[mode], {}
    memory = np.random.default_rng(SEED).integers(0, 256, (SMEM.rows, LINE_BYTES), np.uint8)

    async def source(ctx):
        arrivals = [{"packet": {"change": change}} for change in changes]
        await send(ctx, dut.i, arrivals, idle=stalls["idle"], seed=SEED)

    async def sink(ctx):
        cycles = []
        for number in range(len(changes)):
            (arrival,), (cycle,) = await receive(ctx, dut.o, 1, stall=stalls["stall"], seed=number)
            change = arrival["packet"]["change"]
            memory[change["row"]] = np.frombuffer(change["data"].to_bytes(LINE_BYTES, "little"), np.uint8)
            cycles.append(cycle)
        result["cycles"] = cycles

    async def shared_memory(ctx):
        rng = random.Random(SEED)
        ticks = ctx.tick().sample(dut.fetch.rows.valid & dut.fetch.rows.ready, dut.fetch.rows.payload)
        ctx.set(dut.fetch.rows.ready, 1)
        async for _, _, fetches, row in ticks:
            line = memory[row].tobytes() if fetches else rng.randbytes(LINE_BYTES)
            is_ready = rng.random() >= stalls["stall"]
            set_together(ctx, (dut.fetch.line, int.from_bytes(line, "little")), (dut.fetch.rows.ready, is_ready))

    simulate(dut, source, sink, background=[shared_memory, watch_stream(dut.o)])
    return memory, result["cycles"]


@pytest.mark.parametrize("mode", STALL_MODES)
def test_every_reduction(mode):
    """Few rows, so that most lines meet what was written just before."""
    rng = random.Random(f"{SEED} {mode}")
    print(f"seed {SEED}")
    expected = np.random.default_rng(SEED).integers(0, 256, (SMEM.rows, LINE_BYTES), np.uint8)
    changes = []
    for op, element in [*LEGAL, (Reduction.NONE, Element.U8)]:
        row, data = rng.randrange(2), rng.randbytes(LINE_BYTES)
        changes.append({"row": row, "data": int.from_bytes(data, "little"), "reduction": op, "element": element})
        source = np.frombuffer(data, np.uint8)
        expected[row] = source if op == Reduction.NONE else reduce(op, element, expected[row], source)
    memory, _ = run(changes, mode)
    assert (memory == expected).all()


def test_cycles():
    """A line in 17 cycles with floats, one without a reduction in one."""
    add = {"reduction": Reduction.ADD, "element": Element.U32}
    _, cycles = run([{"row": 1}, {"row": 2}, {"row": 1} | add, {"row": 1} | add, {"row": 2}])
    assert np.cumsum(np.array(cycles) + 1).tolist() == [1, 2, 19, 36, 37]


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


def landing_end(**others):
    flags = {name: others.pop(name) for name in ("dropped", "astray") if name in others}
    return {"packet": {"ends": 1, "end": END | others}} | flags


def landing_line(row):
    return {"packet": {"change": {"row": row}}}


@pytest.mark.parametrize("mode", STALL_MODES)
def test_lines_and_ends(mode):
    arrivals = [
        landing_line(3),
        landing_end(),
        landing_line(4),
        landing_end(signal=0, bytes=5),
        landing_line(5),
        landing_end(tag=10, bytes=6),
    ]
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
    assert land([landing_end(**flags), landing_end()], 1) == ([], [(0x48, 77)], [1, 0], [refusal], [77])


def test_a_bus_error_is_the_issuers_alone():
    assert land([landing_end(failed=1), landing_end(failed=1, dropped=1)], 0) == ([], [], [0, 0], [], [])
