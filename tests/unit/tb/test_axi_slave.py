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

ALL = (1 << WORD) - 1
SIZES = {"addr_width": 16, "data_width": 8 * WORD, "id_width": 2, "max_burst": MAX_BURST,
         "max_outstanding": MAX_OUTSTANDING}  # fmt: skip


def combinations(*names):
    """Knobs, each with and without each of some options, with and without latency and stalls; with their names."""
    for chosen, (latency, stall) in product(product((False, True), repeat=len(names)), [(0, 0.0), (9, 0.4)]):
        options = dict(zip(names, chosen, strict=True))
        name = "+".join([*(name for name in names if options[name]), *["stalls"] * bool(stall)])
        yield pytest.param(Knobs(**options, latency=latency, stall=stall), id=name or "plain")


READS = list(combinations("reorder", "interleave", "ready_after_valid"))
WRITES = list(combinations("reorder", "ready_after_valid", "data_first"))


def requests(rng, count):
    """Random requests that a manager of this project might make."""
    for _ in range(count):
        beats = rng.randint(1, MAX_BURST)
        page, word = rng.randrange(2), rng.randrange(4096 // WORD - beats + 1)
        yield Request(rng.randrange(IDS), 4096 * page + WORD * word, beats)


def failing(slave):
    """Sets errors in a slave whose memory ends at 8000."""
    slave.faults.fail(0x400, 0x400, Response.SLVERR)
    slave.faults.fail(0x500, 1, Response.DECERR)
    return slave


def expected_response(address):
    """The response that the word at an address gets then."""
    if address == 0x500 or address >= 8000:
        return Response.DECERR
    return Response.SLVERR if 0x400 <= address < 0x800 else Response.OKAY


def show(ctx, monitor, values):
    """Sets inputs of a monitor."""
    for name, value in values.items():
        ctx.set(getattr(monitor, name), int(value))


def run(slave, seed, rready=0.7):
    """Random requests into ``slave`` under the monitor.

    Returns the requests accepted and the beats taken as (cycle, item), and (ARVALID, ARREADY) of every cycle.
    """
    monitor = Axi4ReadMonitor(**SIZES)
    rng = random.Random(seed)
    waiting = list(requests(random.Random(seed), REQUESTS))
    asked, answered, ready_history = [], [], []

    async def testbench(ctx):
        show(ctx, monitor, {"arsize": 4, "arburst": 1})
        shown, cycle = None, 0
        while waiting or shown or not slave.idle:
            may_ask = cycle > 0 and ctx.get(monitor.in_flight) < MAX_OUTSTANDING
            if shown is None and waiting and may_ask and rng.random() < 0.7:
                shown = waiting.pop(0)
                show(ctx, monitor, {"arid": shown.id, "araddr": shown.address, "arlen": shown.beats - 1})
            taking = rng.random() < rready
            outputs = dict.fromkeys(slave.OUTPUTS, 0) | slave.outputs()
            show(ctx, monitor, {"arvalid": shown is not None, "rready": taking} | outputs)
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


@pytest.mark.parametrize("knobs", READS)
def test_answers(knobs):
    """The monitor is content, and every ID gets its data in order, with the errors where they were set."""
    slave = failing(AxiReadSlave(MEMORY[:8000], word_bytes=WORD, knobs=knobs, seed=5))
    asked, answered, _ = run(slave, seed=7)
    assert slave.requests == [request for _, request in asked]
    for number in range(IDS):
        beats = [beat for _, beat in answered if beat.id == number]
        expected = list(expected_beats(asked, number))
        assert len(beats) == len(expected)
        for beat, (address, last) in zip(beats, expected, strict=True):
            data = int.from_bytes(MEMORY[:8000][address : address + WORD], "little")
            assert beat == Beat(number, data, expected_response(address), last)


@pytest.mark.parametrize("knobs", READS)
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


def writes(seed):
    """Random bursts that a manager of this project might make: request and beats."""
    rng = random.Random(seed)
    for request in requests(rng, 40):
        data = [(rng.getrandbits(8 * WORD), rng.getrandbits(WORD)) for _ in range(request.beats)]
        yield request, [WriteBeat(*beat, number == request.beats) for number, beat in enumerate(data, 1)]


def writes_run(slave, seed, eager=0.7):
    """Random writes into ``slave`` under the monitor; requests and data are shown without waiting for each other.

    Returns, by cycle, the requests accepted, the last beats accepted, the answers taken, and (VALID, READY) of AW.
    """
    monitor = Axi4WriteMonitor(**SIZES)
    rng = random.Random(seed)
    bursts = list(writes(seed))
    requests = deque(request for request, _ in bursts)
    beats = deque(beat for _, beats in bursts for beat in beats)
    asked, completed, answered, history = [], [], [], []

    async def testbench(ctx):
        show(ctx, monitor, {"awsize": 4, "awburst": 1})
        asking = giving = False
        cycle = 0
        while requests or beats or not slave.idle:
            may_ask = ctx.get(monitor.in_flight) < MAX_OUTSTANDING
            may_give = len(completed) < len(asked) + MAX_OUTSTANDING
            asking = bool(requests) and (asking or (cycle > 0 and may_ask and rng.random() < eager))
            giving = bool(beats) and (giving or (cycle > 0 and may_give and rng.random() < eager))
            request, beat = requests[0] if asking else None, beats[0] if giving else None
            taking = rng.random() < eager
            shown = dict.fromkeys(slave.OUTPUTS, 0) | slave.outputs()
            shown |= {"awvalid": asking, "wvalid": giving, "bready": taking}
            if asking:
                shown |= {"awid": request.id, "awaddr": request.address, "awlen": request.beats - 1}
            if giving:
                shown |= {"wdata": beat.data, "wstrb": beat.strobe, "wlast": beat.last}
            show(ctx, monitor, shown)
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


@pytest.mark.parametrize("knobs", WRITES)
def test_writes_answers(knobs):
    """The monitor is content, every ID gets its answers in order, and what is refused is not written."""
    memory = bytearray(MEMORY[:8000])
    slave = failing(AxiWriteSlave(memory, word_bytes=WORD, knobs=knobs, seed=5))
    asked, _, answered, _ = writes_run(slave, seed=7)
    assert slave.requests == [request for _, request in asked]
    expected = {number: [] for number in range(IDS)}
    for request, _ in writes(7):
        addresses = [request.address + WORD * number for number in range(request.beats)]
        expected[request.id].append(max(map(expected_response, addresses)))
        for address in addresses:
            assert (
                expected_response(address) == Response.OKAY or memory[address:][:WORD] == MEMORY[:8000][address:][:WORD]
            )
    for number in range(IDS):
        assert [answer.response for _, answer in answered if answer.id == number] == expected[number]


def test_memory():
    """Bytes whose strobe is set are written, and no others; in the order of the requests, without reordering."""
    memory, expected = bytearray(MEMORY), bytearray(MEMORY)
    writes_run(AxiWriteSlave(memory, word_bytes=WORD, knobs=Knobs(latency=3, stall=0.3), seed=5), seed=9)
    for request, beats in writes(9):
        for number, beat in enumerate(beats):
            for byte in range(WORD):
                if beat.strobe >> byte & 1:
                    expected[request.address + WORD * number + byte] = beat.data >> 8 * byte & 255
    assert memory == expected


@pytest.mark.parametrize("knobs", WRITES)
def test_writes_knobs(knobs):
    """What a knob allows happens, and nothing else does."""
    slave = AxiWriteSlave(bytearray(MEMORY), word_bytes=WORD, knobs=knobs, seed=6)
    asked, completed, answered, history = writes_run(slave, seed=8)
    in_order = [answer.id for _, answer in answered] == [request.id for _, request in asked]
    assert in_order or knobs.reorder
    early = any(ready and not valid for valid, ready in history)
    assert early == (not knobs.ready_after_valid)
    assert answered[0][0] - max(asked[0][0], completed[0]) > knobs.latency
    short = [(cycle, end) for (cycle, request), end in zip(asked, completed, strict=True) if request.beats == 1]
    assert all(end < cycle for cycle, end in short) == knobs.data_first


def test_answers_of_different_ids_overtake():
    slave = AxiWriteSlave(bytearray(MEMORY), word_bytes=WORD, knobs=Knobs(reorder=True, stall=0.7), seed=6)
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
    slave = AxiWriteSlave(bytearray(MEMORY), word_bytes=WORD, seed=1)
    slave.tick(None, None, True)
    for number in range(20):
        slave.tick(Request(number & 3, 64 * number, 1), WriteBeat(number, ALL, True), True)
        assert slave.answer == Answer(number & 3, Response.OKAY)
    assert len(slave.requests) == 20


def test_data_must_be_as_long_as_was_asked():
    slave = AxiWriteSlave(bytearray(MEMORY), word_bytes=WORD, seed=1)
    slave.tick(None, None, True)
    with pytest.raises(AssertionError, match="came with 1 beats"):
        slave.tick(Request(0, 0, 2), WriteBeat(0, ALL, True), True)
