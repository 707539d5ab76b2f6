"""The read port: order, addresses, errors, credits and priorities against a slave that delays and interleaves."""

import random
from collections import deque

import pytest

from support.selection import cases
from support.streams import transact
from tilewright.hw.bus.axi4 import Burst
from tilewright.hw.bus.read_port import ReadPort
from tilewright.verify.pysim.streams import STALL_MODES

BUS_BYTES = 16
OUTSTANDING = 4


def new_port(**changes):
    return ReadPort(
        **{"addr_width": 32, "bus_bytes": BUS_BYTES, "max_outstanding": OUTSTANDING, "max_burst": 8} | changes
    )


def word_at(address):
    """The word at a byte address, which no other address has."""
    return address * 0x1_0000_0001


class Slave:
    """A memory behind the port: answers after ``latency`` cycles, pauses, and interleaves the two IDs beat by beat."""

    def __init__(self, axi, *, latency=3, pause=0.0, failing=(), seed=1):
        self.requests = []  # (cycle, id, address, beats)
        self._axi = axi
        self._latency = latency
        self._pause = pause
        self._failing = failing
        self._rng = random.Random(seed)

    async def requests_process(self, ctx):
        axi = self._axi
        self._waiting = [deque(), deque()]
        cycle = 0
        ctx.set(axi.arready, 1)
        signals = (axi.arvalid, axi.arready, axi.arid, axi.araddr, axi.arlen, axi.arsize, axi.arburst)
        async for *_, valid, ready, ident, address, length, size, burst in ctx.tick().sample(*signals):
            if valid and ready:
                assert (1 << size, burst) == (BUS_BYTES, Burst.INCR)
                assert address % BUS_BYTES == 0
                assert address // 4096 == (address + BUS_BYTES * length) // 4096
                self.requests.append((cycle, ident, address, length + 1))
                beats = [(cycle, address + BUS_BYTES * n, n == length) for n in range(length + 1)]
                self._waiting[ident].extend(beats)
            cycle += 1
            self.cycle = cycle
            ctx.set(axi.arready, self._rng.random() >= self._pause)

    async def beats_process(self, ctx):
        axi = self._axi
        self.cycle = 0
        while True:
            ready_ids = [i for i in (0, 1) if self._waiting[i] and self._waiting[i][0][0] + self._latency <= self.cycle]
            if not ready_ids or self._rng.random() < self._pause:
                ctx.set(axi.rvalid, 0)
                await ctx.tick()
                continue
            ident = self._rng.choice(ready_ids)
            _, address, last = self._waiting[ident].popleft()
            ctx.set(axi.rid, ident)
            ctx.set(axi.rdata, word_at(address))
            ctx.set(axi.rresp, 3 if address in self._failing else 0)
            ctx.set(axi.rlast, last)
            ctx.set(axi.rvalid, 1)
            _, _, ready = await ctx.tick().sample(axi.rready)
            while not ready:
                _, _, ready = await ctx.tick().sample(axi.rready)

    @property
    def processes(self):
        return [self.requests_process, self.beats_process]


def read(dut, slave, bursts, descriptors=(), mode="none"):
    """Runs ``bursts`` (word address, beats) and ``descriptors`` (byte address); payloads and cycles of all ports."""
    items = [{"word": word, "beats_minus_one": beats - 1} for word, beats in bursts]
    counts = {"words": sum(beats for _, beats in bursts), "descriptor_words": len(descriptors) * 128 // BUS_BYTES}
    sent = {"bursts": items, "descriptors": descriptors}
    return transact(dut, sent, counts, mode, watch=["requests.o"], background=slave.processes)


def some_bursts(count, seed):
    rng = random.Random(seed)
    bursts = []
    for _ in range(count):
        beats = rng.choice([1, 1, 2, 3, 16])
        bursts.append((256 * rng.randrange(1 << 20) + rng.randrange(256 - beats + 1), beats))
    return bursts


@cases("pause, mode", [(0.0, "none"), (0.4, "both")], [(0.4, mode) for mode in STALL_MODES if mode != "both"])
def test_words_and_descriptors(pause, mode):
    bursts = some_bursts(60, seed=5)
    # The second and the last lie across a page boundary.
    descriptors = [0x40, 0xFC0, 0x12380, 0x40, 0xFFFFFFC0 - 0x1000]
    addresses = [BUS_BYTES * (word + n) for word, beats in bursts for n in range(beats)]
    failing = {*addresses[::7], 0xFC0, 0x1000 + 0x30}
    dut = new_port()
    slave = Slave(dut.axi, pause=pause, failing=failing)
    payloads, _ = read(dut, slave, bursts, descriptors, mode)

    assert [word.data for word in payloads["words"]] == [word_at(address) for address in addresses]
    assert [word.address for word in payloads["words"]] == addresses
    assert [word.error for word in payloads["words"]] == [address in failing for address in addresses]

    fetched = [base + offset for base in descriptors for offset in range(0, 128, BUS_BYTES)]
    assert [word.data for word in payloads["descriptor_words"]] == [word_at(address) for address in fetched]
    assert [word.error for word in payloads["descriptor_words"]] == [address in failing for address in fetched]
    assert [word.last for word in payloads["descriptor_words"]] == 5 * ([0] * 7 + [1])
    assert [request[2:] for request in slave.requests if request[1] == 0] == [(16 * word, n) for word, n in bursts]


def test_full_rate_and_latency():
    """One request and one word a cycle; a request is at AR one cycle after the burst was offered."""
    dut = new_port(max_outstanding=16)
    slave = Slave(dut.axi, latency=5)
    _, cycles = read(dut, slave, [(n, 1) for n in range(100)])
    assert cycles["bursts"] == list(range(100))
    assert [request[0] for request in slave.requests] == list(range(1, 101))
    first = cycles["words"][0]
    assert cycles["words"] == list(range(first, first + 100))


@pytest.mark.parametrize(("max_burst", "beats"), [(1, 1), (2, 2), (4, 4), (256, 4)])
def test_bursts_of_a_descriptor(max_burst, beats):
    """No longer than a burst may be, nor than the alignment of descriptors."""
    dut = new_port(max_burst=max_burst)
    slave = Slave(dut.axi)
    payloads, _ = read(dut, slave, [], [0xFC0])
    places = range(0xFC0, 0x1040, BUS_BYTES * beats)
    assert [request[1:] for request in slave.requests] == [(1, place, beats) for place in places]
    fetched = range(0xFC0, 0x1040, BUS_BYTES)
    assert [word.data for word in payloads["descriptor_words"]] == [word_at(address) for address in fetched]


def test_refused_bus():
    with pytest.raises(ValueError, match=r"^bus_bytes must be 4, 8, 16, 32 or 64, not 128$"):
        new_port(bus_bytes=128)
