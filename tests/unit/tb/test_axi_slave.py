"""Our AXI slave under the protocol monitor: legal with any knobs, and each knob does what it says."""

import random
from collections import deque
from itertools import pairwise, product

import pytest

from tilewright.sim.harness.axi_channels import Rule
from tilewright.sim.harness.axi_monitor import Axi4ReadMonitor, Axi4WriteMonitor
from tilewright.tb.axi_slave import Answer, AxiReadSlave, AxiWriteSlave, Beat, Knobs, Request, Response, WriteBeat
from tilewright.verify.pysim.simulate import simulate

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


WRITES_REQUESTS = 40
CONTENTS = random.Random(2).randbytes(8192)
ALL = (1 << WORD) - 1

WRITES_COMBINATIONS = [
    Knobs(reorder, ready_after_valid=late, latency=latency, aw_stall=stall, w_stall=stall, b_stall=stall, data_first=f)
    for (reorder, late, f), (latency, stall) in product(product((False, True), repeat=3), [(0, 0.0), (9, 0.4)])
]


def _writes_name(knobs):
    words = [name for name in ("reorder", "ready_after_valid", "aw_stall", "data_first") if getattr(knobs, name)]
    return "+".join(words) or "plain"


def writes(seed):
    """Random bursts that a manager of this project might make: request and beats."""
    rng = random.Random(seed)
    for _ in range(WRITES_REQUESTS):
        count = rng.randint(1, MAX_BURST)
        page, word = rng.randrange(2), rng.randrange(4096 // WORD - count + 1)
        beats = [
            WriteBeat(rng.getrandbits(8 * WORD), rng.getrandbits(WORD), number == count - 1) for number in range(count)
        ]
        yield Request(rng.randrange(IDS), 4096 * page + WORD * word, count), beats


def writes_run(slave, seed, eager=0.7):
    """Random writes into ``slave`` under the monitor; requests and data are shown without waiting for each other.

    Returns, by cycle, the requests accepted, the last beats accepted, the answers taken, and (VALID, READY) of AW.
    """
    monitor = Axi4WriteMonitor(
        addr_width=16, data_width=8 * WORD, id_width=2, max_burst=MAX_BURST, max_outstanding=MAX_OUTSTANDING
    )
    rng = random.Random(seed)
    bursts = list(writes(seed))
    requests = deque(request for request, _ in bursts)
    beats = deque(beat for _, beats in bursts for beat in beats)
    asked, completed, answered, history = [], [], [], []

    async def testbench(ctx):
        ctx.set(monitor.awsize, 4)
        ctx.set(monitor.awburst, 1)
        asking = giving = False
        cycle = 0
        while requests or beats or not slave.idle:
            may_ask = ctx.get(monitor.in_flight) < MAX_OUTSTANDING
            may_give = len(completed) < len(asked) + MAX_OUTSTANDING
            asking = bool(requests) and (asking or (cycle > 0 and may_ask and rng.random() < eager))
            giving = bool(beats) and (giving or (cycle > 0 and may_give and rng.random() < eager))
            request, beat = requests[0] if asking else None, beats[0] if giving else None
            taking = rng.random() < eager
            answer = slave.answer or Answer(0, Response.OKAY)
            shown = {"awvalid": asking, "awready": slave.awready, "wvalid": giving, "wready": slave.wready}
            shown |= {"bvalid": slave.answer is not None, "bready": taking, "bid": answer.id, "bresp": answer.response}
            if asking:
                shown |= {"awid": request.id, "awaddr": request.address, "awlen": request.beats - 1}
            if giving:
                shown |= {"wdata": beat.data, "wstrb": beat.strobe, "wlast": beat.last}
            for name, value in shown.items():
                ctx.set(getattr(monitor, name), int(value))
            if slave.answer is not None and taking:
                answered.append((cycle, slave.answer))
            history.append((asking, slave.awready))
            accepted, given = asking and slave.awready, giving and slave.wready
            if accepted:
                asked.append((cycle, requests.popleft()))
            if given and beats.popleft().last:
                completed.append(cycle)
            await ctx.tick()
            slave.tick(request, beat, taking)
            asking, giving = asking and not accepted, giving and not given
            cycle += 1
        assert Rule.decode(ctx.get(monitor.violations)) == []
        assert ctx.get(monitor.in_flight) == 0

    simulate(monitor, testbench)
    return asked, completed, answered, history


def _response(address):
    if address == 0x500 or address >= 8000:
        return Response.DECERR
    return Response.SLVERR if 0x400 <= address < 0x800 else Response.OKAY


@pytest.mark.parametrize("knobs", WRITES_COMBINATIONS, ids=_writes_name)
def test_writes_answers(knobs):
    """The monitor is content, every ID gets its answers in order, and what is refused is not written."""
    memory = bytearray(CONTENTS[:8000])
    slave = AxiWriteSlave(memory, word_bytes=WORD, knobs=knobs, seed=5)
    slave.faults.fail(0x400, 0x400, Response.SLVERR)
    slave.faults.fail(0x500, 1, Response.DECERR)
    asked, _, answered, _ = writes_run(slave, seed=7)
    assert slave.requests == [request for _, request in asked]
    expected = {number: [] for number in range(IDS)}
    for request, _ in writes(7):
        addresses = [request.address + WORD * number for number in range(request.beats)]
        expected[request.id].append(max(map(_response, addresses)))
        for address in addresses:
            assert _response(address) == Response.OKAY or memory[address:][:WORD] == CONTENTS[:8000][address:][:WORD]
    for number in range(IDS):
        assert [answer.response for _, answer in answered if answer.id == number] == expected[number]


def test_memory():
    """Bytes whose strobe is set are written, and no others; in the order of the requests, without reordering."""
    memory, expected = bytearray(CONTENTS), bytearray(CONTENTS)
    writes_run(AxiWriteSlave(memory, word_bytes=WORD, knobs=Knobs(latency=3, w_stall=0.3), seed=5), seed=9)
    for request, beats in writes(9):
        for number, beat in enumerate(beats):
            for byte in range(WORD):
                if beat.strobe >> byte & 1:
                    expected[request.address + WORD * number + byte] = beat.data >> 8 * byte & 255
    assert memory == expected


@pytest.mark.parametrize("knobs", WRITES_COMBINATIONS, ids=_writes_name)
def test_writes_knobs(knobs):
    """What a knob allows happens, and nothing else does."""
    slave = AxiWriteSlave(bytearray(CONTENTS), word_bytes=WORD, knobs=knobs, seed=6)
    asked, completed, answered, history = writes_run(slave, seed=8)
    in_order = [answer.id for _, answer in answered] == [request.id for _, request in asked]
    assert in_order or knobs.reorder
    early = any(ready and not valid for valid, ready in history)
    assert early == (not knobs.ready_after_valid)
    assert answered[0][0] - max(asked[0][0], completed[0]) > knobs.latency
    short = [(cycle, end) for (cycle, request), end in zip(asked, completed, strict=True) if request.beats == 1]
    assert all(end < cycle for cycle, end in short) == knobs.data_first


def test_answers_of_different_ids_overtake():
    slave = AxiWriteSlave(bytearray(CONTENTS), word_bytes=WORD, knobs=Knobs(reorder=True, b_stall=0.7), seed=6)
    asked, _, answered, _ = writes_run(slave, seed=8)
    assert [answer.id for _, answer in answered] != [request.id for _, request in asked]


def test_a_late_write_is_late():
    """Memory changes when the answer is shown and not before; a reset takes back what was not answered."""
    memory = bytearray(64)
    slave = AxiWriteSlave(memory, word_bytes=WORD, knobs=Knobs(latency=2), seed=1)
    slave.tick(None, None, True)
    slave.tick(Request(2, 16, 1), WriteBeat(0xABCD, 0b10, True), True)
    slave.tick(None, None, True)
    assert slave.answer is None
    assert not any(memory)
    slave.tick(None, None, True)
    assert slave.answer == Answer(2, Response.OKAY)
    assert memory == bytes(17) + b"\xab" + bytes(46)
    slave.tick(Request(2, 32, 1), WriteBeat(0xABCD, ALL, True), True)
    slave.reset()
    assert slave.idle
    for _ in range(4):
        slave.tick(None, None, True)
    assert memory == bytes(17) + b"\xab" + bytes(46)


def test_writes_full_rate():
    """Without stalls, requests, data and answers pass one a cycle."""
    slave = AxiWriteSlave(bytearray(CONTENTS), word_bytes=WORD, seed=1)
    slave.tick(None, None, True)
    for number in range(20):
        slave.tick(Request(number & 3, 64 * number, 1), WriteBeat(number, ALL, True), True)
        assert slave.answer == Answer(number & 3, Response.OKAY)
    assert len(slave.requests) == 20


def test_data_must_be_as_long_as_was_asked():
    slave = AxiWriteSlave(bytearray(CONTENTS), word_bytes=WORD, seed=1)
    slave.tick(None, None, True)
    with pytest.raises(AssertionError, match="came with 1 beats"):
        slave.tick(Request(0, 0, 2), WriteBeat(0, ALL, True), True)
