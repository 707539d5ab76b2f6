"""Block memory behind AXI4: bursts of both directions and the computer's words at the same time, against bytes."""

import random

import pytest

from support.streams import transact
from tilewright.board.memory import BlockMemory
from tilewright.hw.bus.axi4 import Response
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES

SEED = 9
SIZE, WORD = 8192, 16
SIZES = {"addr_width": 20, "data_width": 8 * WORD, "id_width": 2, "size_bytes": SIZE}


class Manager:
    """Plays the manager of the port, a burst at a time in each direction."""

    def __init__(self, axi, stall=0.0, seed=SEED):
        self._axi, self._stall, self._rng = axi, stall, random.Random(seed)
        self.beats = []  # cycle of each beat of a read
        self.answered = []  # cycle of each answer to a write

    async def _until(self, ctx, channel, ready, **values):
        """Waits for a transfer of a channel; the sampled values of ``values``' names."""
        while self._rng.random() < self._stall:
            await ctx.tick()
        ours, theirs = (f"{channel}{side}" for side in (("ready", "valid") if ready else ("valid", "ready")))
        for name, value in values.items():
            ctx.set(getattr(self._axi, name), value)
        ctx.set(getattr(self._axi, ours), 1)
        cycles, names = 0, ("rid", "rdata", "rresp", "rlast", "bid", "bresp")
        while True:
            _, _, done, *found = await ctx.tick().sample(
                getattr(self._axi, theirs), *(getattr(self._axi, name) for name in names)
            )
            cycles += 1
            if done:
                ctx.set(getattr(self._axi, ours), 0)
                return cycles, dict(zip(names, found, strict=True))

    async def read(self, ctx, address, beats, number=1):
        """Words of a burst, and their responses."""
        await self._until(ctx, "ar", False, araddr=address, arlen=beats - 1, arid=number)
        words, responses = [], []
        for beat in range(beats):
            cycles, found = await self._until(ctx, "r", True)
            self.beats.append(cycles)
            assert (found["rid"], found["rlast"]) == (number, beat == beats - 1)
            words.append(found["rdata"])
            responses.append(found["rresp"])
        return words, responses

    async def write(self, ctx, address, items, number=2):
        """The response to a burst of (word, strobe)."""
        await self._until(ctx, "aw", False, awaddr=address, awlen=len(items) - 1, awid=number)
        for place, (word, strobe) in enumerate(items):
            self.beats.append((await self._until(
                ctx, "w", False, wdata=word, wstrb=strobe, wlast=place == len(items) - 1))[0])  # fmt: skip
        cycles, found = await self._until(ctx, "b", True)
        self.answered.append(cycles)
        assert found["bid"] == number
        return found["bresp"]


def make(simulated=False):
    return BlockMemory(**SIZES, simulated=simulated)


def change(image, address, items):
    for place, (word, strobe) in enumerate(items):
        for byte in range(WORD):
            if strobe >> byte & 1:
                image[address + place * WORD + byte] = word >> 8 * byte & 0xFF


@pytest.mark.parametrize("simulated", [False, True], ids=["synthesised", "simulated"])
@pytest.mark.parametrize("mode", STALL_MODES)
def test_bursts_and_words_at_the_same_time(mode, simulated):
    """The port's bursts lie in the lower half, the computer's words in the upper one; reads follow the writes."""
    dut, image = elaborated(make, simulated), bytearray(SIZE)
    stalls, rng = STALL_MODES[mode], random.Random(SEED)

    async def bursts(ctx):
        manager = Manager(dut.axi, max(stalls.values()))
        for _ in range(25):
            beats = rng.randint(1, 8)
            address = WORD * rng.randrange(SIZE // 2 // WORD - beats)
            items = [(rng.getrandbits(8 * WORD), rng.getrandbits(WORD)) for _ in range(beats)]
            assert await manager.write(ctx, address, items) == Response.OKAY
            change(image, address, items)
            start = max(0, address - WORD * rng.randrange(3))
            found, responses = await manager.read(ctx, start, beats)
            assert set(responses) == {Response.OKAY}
            expected = [image[start + WORD * n :][:WORD] for n in range(beats)]
            assert [word.to_bytes(WORD, "little") for word in found] == expected

    accesses = [
        {
            "address": SIZE // 2 + 4 * host_rng.randrange(32),
            "write": host_rng.getrandbits(1),
            "data": host_rng.getrandbits(32),
            "strobe": host_rng.getrandbits(4),
        }
        for host_rng in [random.Random(SEED + 1)]
        for _ in range(100)
    ]

    payloads, _ = transact(
        dut, {"accesses.requests": accesses}, {"accesses.answers": len(accesses)}, mode, seed=SEED, testbenches=[bursts]
    )
    upper = bytearray(SIZE)
    for access, answer in zip(accesses, payloads["accesses.answers"], strict=True):
        address = access["address"]
        assert not answer.error
        if access["write"]:
            for byte in range(4):
                if access["strobe"] >> byte & 1:
                    upper[address + byte] = access["data"] >> 8 * byte & 0xFF
        else:
            assert answer.data == int.from_bytes(upper[address : address + 4], "little")


@pytest.mark.parametrize("simulated", [False, True], ids=["synthesised", "simulated"])
def test_full_rate_and_latency(simulated):
    dut = elaborated(make, simulated)
    reads, writes = Manager(dut.axi), Manager(dut.axi)

    async def bursts(ctx):
        await reads.read(ctx, 0, 16)
        await writes.write(ctx, 0, [(n, 0xFFFF) for n in range(16)])

    simulate(dut, bursts)
    # From the cycle after the address on: one cycle for the array, then a beat a cycle; and data at once.
    assert reads.beats == [2] + [1] * 15
    assert (writes.beats, writes.answered) == ([1] * 16, [1])


@pytest.mark.parametrize(("write", "latency"), [(0, 2), (1, 1)], ids=["read", "write"])
def test_latency_of_words(write, latency):
    requests = {"accesses.requests": [{"address": 4, "write": write}] * 8}
    _, cycles = transact(elaborated(make), requests, {"accesses.answers": 8})
    assert cycles["accesses.requests"] == list(range(0, 8 * (latency + 1), latency + 1))
    assert cycles["accesses.answers"] == [cycle + latency for cycle in cycles["accesses.requests"]]


def test_a_beat_that_waits_is_not_changed_by_a_word_of_the_computer():
    dut, found = elaborated(make), []

    async def bursts(ctx):
        manager = Manager(dut.axi)
        await manager.write(ctx, 0, [(0x1234, 0xFFFF)])
        await manager._until(ctx, "ar", False, araddr=0, arlen=0, arid=0)
        await ctx.tick().repeat(20)
        found.append((await manager._until(ctx, "r", True))[1]["rdata"])

    payloads, _ = transact(dut, {"accesses.requests": [{"address": 16}]}, {"accesses.answers": 1}, testbenches=[bursts],
                           starts={"accesses.requests": 8})  # fmt: skip
    assert (found, payloads["accesses.answers"][0].data) == ([0x1234], 0)


def test_outside():
    dut = elaborated(make)

    async def bursts(ctx):
        manager = Manager(dut.axi)
        for address in (SIZE, 3 * SIZE + 64, (1 << 20) - 4 * WORD):
            assert await manager.write(ctx, address, [((1 << 128) - 1, 0xFFFF)] * 4) == Response.DECERR
            assert (await manager.read(ctx, address, 4))[1] == [Response.DECERR] * 4
            assert await manager.read(ctx, address % SIZE, 4) == ([0] * 4, [Response.OKAY] * 4)

    simulate(dut, bursts)


@pytest.mark.parametrize("size", [1000, 2048, 6000, "4096"])
def test_wrong_size(size):
    with pytest.raises(ValueError, match=rf"^size_bytes must be a power of two, 4096 at least, not {size!r}$"):
        BlockMemory(**SIZES | {"size_bytes": size})


def test_more_than_can_be_addressed():
    with pytest.raises(
        ValueError, match=r"^size_bytes must be at most 1048576, all that can be addressed, not 2097152$"
    ):
        BlockMemory(**SIZES | {"size_bytes": 1 << 21})
