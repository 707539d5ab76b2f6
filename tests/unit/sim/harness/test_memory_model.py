"""The memory model: when answers come, in which order, and which are errors; writes and reads like a numpy memory."""

import random
from collections import deque

import numpy as np
import pytest
from amaranth.hdl import Module

from tilewright.hw.bus.axi4 import Burst
from tilewright.sim.harness.axi_channels import Rule
from tilewright.sim.harness.axi_monitor import Axi4Monitor
from tilewright.sim.harness.memory_model import CHANNELS, MemoryModel
from tilewright.verify.pysim.simulate import simulate

BYTES = 16


def _model(depth=64, outstanding=32):
    dut = MemoryModel(addr_width=20, data_width=8 * BYTES, depth=depth, outstanding=outstanding)
    for word in range(depth):
        dut.array.contents.init[word] = 0x1000 + word
    return dut


async def _request(ctx, dut, word, beats, number=0):
    """Returns after the cycle in which the request was accepted."""
    ctx.set(dut.axi.arid, number)
    ctx.set(dut.axi.araddr, word * BYTES)
    ctx.set(dut.axi.arlen, beats - 1)
    ctx.set(dut.axi.arvalid, 1)
    while not (await ctx.tick().sample(dut.axi.arready))[2]:
        pass
    ctx.set(dut.axi.arvalid, 0)


def _collector(dut, beats, stop):
    """Takes every beat until ``stop`` are there: (cycle, id, data, resp, last)."""

    async def collect(ctx):
        axi, cycle = dut.axi, 0
        ctx.set(axi.rready, 1)
        while len(beats) < stop:
            _, _, valid, *beat = await ctx.tick().sample(axi.rvalid, axi.rid, axi.rdata, axi.rresp, axi.rlast)
            if valid:
                number, word, response, last = beat
                beats.append((cycle, number, word, getattr(response, "value", response), last))
            cycle += 1

    return collect


@pytest.mark.parametrize("latency", [2, 3, 17])
def test_latency_and_full_rate(latency):
    dut, beats = _model(), []

    async def manager(ctx):
        ctx.set(dut.latency, latency)
        for word in range(20):
            await _request(ctx, dut, word, 1, number=word & 1)

    simulate(dut, manager, _collector(dut, beats, 20))
    # Requests are accepted in cycles 0 to 19.
    assert [cycle for cycle, *_ in beats] == [latency + word for word in range(20)]
    assert [(number, word) for _, number, word, *_ in beats] == [(word & 1, 0x1000 + word) for word in range(20)]
    assert all(response == 0 and last for *_, response, last in beats)


def test_bursts_follow_without_a_gap():
    dut, beats = _model(), []

    async def manager(ctx):
        ctx.set(dut.latency, 5)
        await _request(ctx, dut, 4, 7)
        await _request(ctx, dut, 40, 3)

    simulate(dut, manager, _collector(dut, beats, 10))
    assert [cycle for cycle, *_ in beats] == list(range(5, 15))
    assert [word - 0x1000 for _, _, word, *_ in beats] == [4, 5, 6, 7, 8, 9, 10, 40, 41, 42]
    assert [last for *_, last in beats] == [0] * 6 + [1, 0, 0, 1]


def test_random_pauses_keep_order_and_data():
    dut, beats = _model(), []

    async def manager(ctx):
        for name, value in {"latency": 6, "ar_stall": 128, "r_stall": 128, "seed": 7, "start": 1}.items():
            ctx.set(getattr(dut, name), value)
        await ctx.tick()
        ctx.set(dut.start, 0)
        for word in range(30):
            await _request(ctx, dut, word, 2)

    simulate(dut, manager, _collector(dut, beats, 60))
    assert [word - 0x1000 for _, _, word, *_ in beats] == [word + beat for word in range(30) for beat in range(2)]
    assert beats[-1][0] > 60 + 20  # it did pause


def test_queue_fills_and_holds():
    dut = _model(outstanding=16)

    async def manager(ctx):
        ctx.set(dut.latency, 100)
        for word in range(16):
            await _request(ctx, dut, word, 1)
        assert not ctx.get(dut.axi.arready)

    simulate(dut, manager)


def test_windows_of_errors():
    dut, beats = _model(depth=32), []

    async def manager(ctx):
        for name, value in {"error_first": 105, "error_last": 106, "error_response": 2, "error_reads": 1}.items():
            ctx.set(getattr(dut, name), value)
        ctx.set(dut.base, 100)
        await _request(ctx, dut, 104, 4)
        await _request(ctx, dut, 131, 2)  # the second one is behind the array
        await _request(ctx, dut, 99, 1)  # before it

    simulate(dut, manager, _collector(dut, beats, 7))
    assert [response for *_, response, _ in beats] == [0, 2, 2, 0, 0, 3, 3]
    assert [word - 0x1000 for _, _, word, *_ in beats[:5]] == [4, 5, 6, 7, 31]


async def _write(ctx, dut, word, values, *, number=0, strobe=(1 << BYTES) - 1):
    """One burst, data behind their address; returns (response, cycles from the last beat to the response)."""
    axi = dut.axi
    ctx.set(axi.awid, number)
    ctx.set(axi.awaddr, word * BYTES)
    ctx.set(axi.awlen, len(values) - 1)
    ctx.set(axi.awvalid, 1)
    while not (await ctx.tick().sample(axi.awready))[2]:
        pass
    ctx.set(axi.awvalid, 0)
    ctx.set(axi.wvalid, 1)
    ctx.set(axi.wstrb, strobe)
    for value in values:
        ctx.set(axi.wdata, value)
        ctx.set(axi.wlast, value is values[-1])
        while not (await ctx.tick().sample(axi.wready))[2]:
            pass
    ctx.set(axi.wvalid, 0)
    ctx.set(axi.bready, 1)
    cycles = 0
    while True:
        cycles += 1
        _, _, valid, answered, response = await ctx.tick().sample(axi.bvalid, axi.bid, axi.bresp)
        if valid:
            assert answered == number
            return response.value, cycles


def _word(ctx, dut, index):
    return ctx.get(dut.array.contents[index])


@pytest.mark.parametrize("latency", [2, 3, 17])
def test_latency_of_writes(latency):
    dut = _model()

    async def manager(ctx):
        ctx.set(dut.latency, latency)
        for number in range(4):
            assert await _write(ctx, dut, 8 * number, [number, 7, 8, 9], number=number) == (0, latency)
        assert [_word(ctx, dut, index) for index in range(23, 29)] == [0x1017, 3, 7, 8, 9, 0x101C]

    simulate(dut, manager)


def test_writes_at_full_rate():
    """Addresses, data and responses pass one a cycle."""
    dut, count = _model(), 40

    async def manager(ctx):
        axi, answers = dut.axi, []
        for name in ("awvalid", "wvalid", "wlast", "bready"):
            ctx.set(getattr(axi, name), 1)
        ctx.set(axi.wstrb, 1)
        for cycle in range(count + 4):
            taken = (axi.awready, axi.wready, axi.bvalid)
            ctx.set(axi.awaddr, cycle * BYTES)
            answers.append((await ctx.tick().sample(*taken))[2:])
        assert answers == [(1, cycle >= 1, cycle >= 3) for cycle in range(count + 4)]

    simulate(dut, manager)


def test_strobes():
    dut = _model()

    async def manager(ctx):
        await _write(ctx, dut, 5, [0xAABBCCDD], strobe=0b0101)
        assert _word(ctx, dut, 5) == 0x00BB10DD
        await _write(ctx, dut, 5, [0xAABBCCDD], strobe=0)
        assert _word(ctx, dut, 5) == 0x00BB10DD

    simulate(dut, manager)


def test_errors_of_writes():
    """A beat with an error changes nothing; the worst one is the response of its burst, and of no other."""
    dut = _model(depth=32)
    window = {"base": 100, "error_first": 105, "error_last": 106, "error_response": 2, "error_writes": 1}

    async def manager(ctx):
        for name, value in window.items():
            ctx.set(getattr(dut, name), value)
        responses = [
            (await _write(ctx, dut, word, values))[0]
            for word, values in [(104, [1, 2]), (107, [3]), (131, [4, 5]), (99, [6]), (105, [7, 8, 9]), (110, [10])]
        ]
        assert responses == [2, 0, 3, 3, 2, 0]
        written = {index: _word(ctx, dut, index) for index in range(32) if _word(ctx, dut, index) < 0x1000}
        assert written == {4: 1, 7: 9, 31: 4, 10: 10}
        ctx.set(dut.error_writes, 0)
        assert (await _write(ctx, dut, 105, [11]))[0] == 0

    simulate(dut, manager)


class _Manager:
    """A manager that writes and reads at random, with addresses and data in any order that AXI4 allows.

    No read and write that are under way at the same time touch the same word: then a numpy memory says what is read.
    """

    WORDS = 24
    BURSTS = 60

    def __init__(self, dut, rng, idle):
        self.dut, self.rng, self.idle = dut, rng, idle
        self.memory = np.array([0x1000 + word for word in range(self.WORDS)], object)
        self.addresses, self.beats = deque(), deque()
        self.writing, self.answers, self.expected = deque(), deque(), deque()
        self.left, self.done = self.BURSTS, 0

    def begin(self):
        """Thinks of one more write or read, if there is none that waits to be shown."""
        if not self.left or self.addresses or self.beats or len(self.writing) > 6:
            return None
        word = self.rng.randrange(self.WORDS - 4)
        count, number = self.rng.randint(1, 4), self.rng.randrange(3)
        words = range(word, word + count)
        written = any(index in words for burst in self.writing for index in burst)
        read = any(index in words for *_, index in self.expected)
        writes = self.rng.random() < 0.5
        if read if writes else written:
            return None
        self.left -= 1
        if writes:
            self.addresses.append((number, word * BYTES, count - 1))
            for index in words:
                value, strobe = self.rng.getrandbits(8 * BYTES), self.rng.getrandbits(BYTES)
                mask = sum(255 << 8 * byte for byte in range(BYTES) if strobe >> byte & 1)
                self.memory[index] = self.memory[index] & ~mask | value & mask
                self.beats.append((value, strobe, index == words[-1]))
            self.writing.append(words)
            self.answers.append(number)
            return None
        self.expected += [(number, self.memory[index], index == words[-1], index) for index in words]
        return number, word * BYTES, count - 1

    async def run(self, ctx):
        axi, request = self.dut.axi, None
        shown = dict.fromkeys(("ar", "aw", "w"), False)
        while self.left or self.writing or self.expected:
            request = request or self.begin()
            for channel, waits in (("ar", request), ("aw", self.addresses), ("w", self.beats)):
                # What has been shown stays.
                shown[channel] = bool(waits) and (shown[channel] or self.rng.random() >= self.idle)
                ctx.set(getattr(axi, f"{channel}valid"), shown[channel])
            for channel, item in (("ar", request), ("aw", self.addresses and self.addresses[0])):
                for name, value in zip(("id", "addr", "len"), item or (), strict=False):
                    ctx.set(getattr(axi, f"{channel}{name}"), value)
            for name, value in zip(("data", "strb", "last"), self.beats[0] if self.beats else (), strict=False):
                ctx.set(getattr(axi, f"w{name}"), value)
            taking = [self.rng.random() >= self.idle for _ in range(2)]
            ctx.set(axi.rready, taking[0])
            ctx.set(axi.bready, taking[1])
            names = ("arready", "awready", "wready", "rvalid", "rid", "rdata", "rlast", "bvalid", "bid", "bresp")
            _, _, *values = await ctx.tick().sample(*(getattr(axi, name) for name in names))
            seen = dict(zip(names, values, strict=True))
            if shown["ar"] and seen["arready"]:
                request, shown["ar"] = None, False
            for channel, waits in (("aw", self.addresses), ("w", self.beats)):
                if shown[channel] and seen[f"{channel}ready"]:
                    waits.popleft()
                    shown[channel] = False
            if seen["rvalid"] and taking[0]:
                assert (seen["rid"], seen["rdata"], seen["rlast"]) == self.expected.popleft()[:3]
            if seen["bvalid"] and taking[1]:
                assert (seen["bid"], seen["bresp"].value) == (self.answers.popleft(), 0)
                self.writing.popleft()


@pytest.mark.parametrize("stall", [0, 128])
@pytest.mark.parametrize("idle", [0.0, 0.5])
def test_like_a_numpy_memory(idle, stall):
    """Both directions at random, under the protocol monitors, with pauses of either side."""
    dut = _model(depth=_Manager.WORDS)
    manager = _Manager(dut, random.Random(f"{idle} {stall}"), idle)
    monitor = Axi4Monitor(dut.axi, reads=32, writes=32, max_burst=4)
    top = Module()
    top.submodules.dut, top.submodules.monitor = dut, monitor

    async def testbench(ctx):
        for channel in CHANNELS:
            ctx.set(getattr(dut, f"{channel}_stall"), stall)
        for name, value in {"latency": 9, "seed": 11, "start": 1}.items():
            ctx.set(getattr(dut, name), value)
        for channel in ("ar", "aw"):
            ctx.set(getattr(dut.axi, f"{channel}size"), BYTES.bit_length() - 1)
            ctx.set(getattr(dut.axi, f"{channel}burst"), Burst.INCR)
        await ctx.tick()
        ctx.set(dut.start, 0)
        await manager.run(ctx)
        assert [_word(ctx, dut, index) for index in range(_Manager.WORDS)] == list(manager.memory)
        assert Rule.decode(ctx.get(monitor.violations)) == []

    simulate(top, testbench)
