"""What a core does not accept is dropped, and the end of its transfer says so."""

import pytest

from tilewright.hw.cluster.network.inbox import Inbox
from tilewright.hw.smem.params import SmemParams
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.pysim.streams import STALL_MODES, receive, send, watch_stream

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

    async def second(ctx):
        await send(ctx, dut.packets[1], [line(row) for row in range(4)])

    async def sink(ctx):
        came.extend((await receive(ctx, dut.arrivals, 8))[0])

    simulate(dut, first, second, sink)
    assert [arrival["sender"] for arrival in came] == [1, 2] * 4
