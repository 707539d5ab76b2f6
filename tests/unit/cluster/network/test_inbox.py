"""Inbox, reducer and landing: what a core accepts is written, reduced, counted and acknowledged."""

import random

import numpy as np
import pytest

from support.streams import transact
from tilewright.golden.tmau.reduce import is_legal, reduce
from tilewright.hw.cluster.network.inbox import Inbox, LineReducer
from tilewright.hw.smem.params import SmemParams
from tilewright.spec import LINE_BYTES, Element, Reduction
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, receive, send, set_together, watch_stream

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
    inputs = {"acceptance": acceptance}
    came = transact(elaborated(inbox), {"packets.0": packets}, {"arrivals": count}, mode, inputs=inputs)[0]["arrivals"]
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


def test_an_end_behind_lines_of_later_transfers():
    """Found by random commands on four cores: the drop of a line was put down to the transfer before."""
    packets = [line(2), line(1, turn=1), line(5, turn=2), end(1), end(2, turn=1), end(3, turn=2), end(4, turn=1)]
    wanted = [2, 5, (1, 0, 0), (2, 1, 0), (3, 0, 0), (4, 0, 0)]
    assert arrivals(packets, len(wanted), {"cores": 0b11, "confine": 1, "first": 2, "last": 7}) == wanted


def test_senders_take_turns():
    packets = {f"packets.{core}": [line(row) for row in range(4)] for core in (0, 1)}
    came, _ = transact(elaborated(inbox), packets, {"arrivals": 8}, inputs={"acceptance.cores": 0b11})
    assert [arrival["sender"] for arrival in came["arrivals"]] == [1, 2] * 4


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
