"""Our AXI slave under the protocol monitor: legal with any knobs, and each knob does what it says."""

import random
from itertools import pairwise, product

import pytest

from tilewright.sim.harness.axi_monitor import Axi4ReadMonitor
from tilewright.sim.harness.axi_rules import Rule
from tilewright.sim.pysim.simulate import simulate
from tilewright.tb.axi_slave.common import Knobs, Request, Response
from tilewright.tb.axi_slave.reads import AxiReadSlave, Beat

WORD = 16
IDS = 4
MAX_BURST = 4
MAX_OUTSTANDING = 8
REQUESTS = 60
MEMORY = random.Random(2).randbytes(8192)

COMBINATIONS = [
    Knobs(reorder, interleave, late, latency, stall, stall)
    for (reorder, interleave, late), (latency, stall) in product(product((False, True), repeat=3), [(0, 0.0), (9, 0.4)])
]


def _name(knobs):
    words = [name for name in ("reorder", "interleave", "ready_after_valid", "ar_stall") if getattr(knobs, name)]
    return "+".join(words) or "plain"


def requests(seed):
    """Random requests that a manager of this project might make."""
    rng = random.Random(seed)
    for _ in range(REQUESTS):
        beats = rng.randint(1, MAX_BURST)
        page, word = rng.randrange(2), rng.randrange(4096 // WORD - beats + 1)
        yield Request(rng.randrange(IDS), 4096 * page + WORD * word, beats)


def run(slave, seed, rready=0.7):
    """Random requests into ``slave`` under the monitor.

    Returns the requests accepted and the beats taken as (cycle, item), and (ARVALID, ARREADY) of every cycle.
    """
    monitor = Axi4ReadMonitor(
        addr_width=16, data_width=8 * WORD, id_width=2, max_burst=MAX_BURST, max_outstanding=MAX_OUTSTANDING
    )
    rng = random.Random(seed)
    waiting = list(requests(seed))
    asked, answered, ready_history = [], [], []

    async def testbench(ctx):
        ctx.set(monitor.arsize, 4)
        ctx.set(monitor.arburst, 1)
        shown, cycle = None, 0
        while waiting or shown or not slave.idle:
            if (
                shown is None
                and waiting
                and ctx.get(monitor.in_flight) < MAX_OUTSTANDING
                and cycle
                and rng.random() < 0.7
            ):
                shown = waiting.pop(0)
                ctx.set(monitor.arid, shown.id)
                ctx.set(monitor.araddr, shown.address)
                ctx.set(monitor.arlen, shown.beats - 1)
            taking = rng.random() < rready
            beat = slave.beat or Beat(0, 0, Response.OKAY, False)
            for name, value in {
                "arvalid": shown is not None,
                "arready": slave.arready,
                "rvalid": slave.beat is not None,
                "rready": taking,
                "rid": beat.id,
                "rdata": beat.data,
                "rresp": beat.response,
                "rlast": beat.last,
            }.items():
                ctx.set(getattr(monitor, name), int(value))
            if slave.beat is not None and taking:
                answered.append((cycle, slave.beat))
            ready_history.append((shown is not None, slave.arready))
            accepted = shown is not None and slave.arready
            if accepted:
                asked.append((cycle, shown))
            await ctx.tick()
            slave.tick(shown, taking)
            shown = None if accepted else shown
            cycle += 1
        assert Rule.decode(ctx.get(monitor.violations)) == []
        assert ctx.get(monitor.in_flight) == 0

    simulate(monitor, testbench)
    return asked, answered, ready_history


def expected_beats(asked, number):
    """(address, last) of the beats that answer one ID."""
    for _, request in asked:
        if request.id == number:
            for beat in range(request.beats):
                yield request.address + WORD * beat, beat == request.beats - 1


@pytest.mark.parametrize("knobs", COMBINATIONS, ids=_name)
def test_answers(knobs):
    """The monitor is content, and every ID gets its data in order, with the errors where they were set."""
    slave = AxiReadSlave(MEMORY[:8000], word_bytes=WORD, knobs=knobs, seed=5)
    slave.faults.fail(0x400, 0x400, Response.SLVERR)
    slave.faults.fail(0x500, 1, Response.DECERR)
    asked, answered, _ = run(slave, seed=7)
    assert slave.requests == [request for _, request in asked]
    for number in range(IDS):
        beats = [beat for _, beat in answered if beat.id == number]
        expected = list(expected_beats(asked, number))
        assert len(beats) == len(expected)
        for beat, (address, last) in zip(beats, expected, strict=True):
            assert beat.last == last
            assert beat.data == int.from_bytes(MEMORY[:8000][address : address + WORD], "little")
            if address == 0x500 or address >= 8000:
                assert beat.response == Response.DECERR
            else:
                assert beat.response == (Response.SLVERR if 0x400 <= address < 0x800 else Response.OKAY)


@pytest.mark.parametrize("knobs", COMBINATIONS, ids=_name)
def test_knobs(knobs):
    """What a knob allows happens, and nothing else does."""
    slave = AxiReadSlave(MEMORY, word_bytes=WORD, knobs=knobs, seed=6)
    asked, answered, history = run(slave, seed=8)
    order = [beat.id for _, beat in answered if beat.last]
    assert (order != [request.id for _, request in asked]) == knobs.reorder
    within = [a.id != b.id for (_, a), (_, b) in pairwise(answered) if not a.last]
    assert any(within) == knobs.interleave
    early = any(ready and not valid for valid, ready in history)
    assert early != knobs.ready_after_valid
    asked_at, answered_at = asked[0][0], answered[0][0]
    assert answered_at - asked_at > knobs.latency


def test_full_rate():
    """Without stalls a beat comes in every cycle from the second after the first request on."""
    slave = AxiReadSlave(MEMORY, word_bytes=WORD, seed=1)
    slave.tick(None, True)
    beats = 0
    for number in range(20):
        slave.tick(Request(number & 3, 64 * number, 4), True)
        assert slave.beat is not None
        beats += 1
    assert len(slave.requests) == beats


def test_forgive_and_reset():
    """Errors end with forgive(), bursts in flight with reset()."""
    slave = AxiReadSlave(MEMORY, word_bytes=WORD, seed=1)
    slave.faults.fail(0, 8192)
    slave.tick(None, True)
    slave.tick(Request(0, 0, 4), True)
    assert slave.beat.response == Response.SLVERR
    slave.reset()
    assert slave.idle
    slave.faults.forgive()
    slave.tick(None, True)
    slave.tick(Request(0, 0, 1), True)
    assert slave.beat == Beat(0, int.from_bytes(MEMORY[:WORD], "little"), Response.OKAY, True)
