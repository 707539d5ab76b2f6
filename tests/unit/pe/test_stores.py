"""Stores: all bytes arrive, and the bytes of one chunk together."""

import random

import pytest

from support.streams import transact
from tilewright.hw.pe.params import PeParams
from tilewright.hw.pe.stores import StoreMerger
from tilewright.hw.smem.params import SmemParams
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, send, watch_stream

SEED = 22
PARAMS = PeParams(smem=SmemParams(1024))
NOTHING = {"chunk": 0, "word": 0, "data": 0, "strobe": 0}


def words_of(address, values, strobes):
    """One lane's words from a byte address on, one an access."""
    return [
        {"chunk": (address + 4 * w) >> 4, "word": (address >> 2) + w & 3, "data": value, "strobe": strobe}
        for w, (value, strobe) in enumerate(zip(values, strobes, strict=True))
    ]


def random_instruction(rng):
    """Lanes write 128 bytes of their own each; some words not at all, some in part."""
    count = rng.choice([1, 2, 4, 7, 16])
    lanes = []
    for lane in rng.sample(range(8), 8):
        address = 128 * lane + 4 * rng.randrange(33 - count)
        strobes = [rng.choice([0xF, 0xF, 0xF, 0x3, 0]) if rng.random() < 0.5 else 0xF for _ in range(count)]
        lanes.append(words_of(address, [rng.getrandbits(32) for _ in range(count)], strobes))
    for w in range(count):
        yield {"last": w == count - 1, "lanes": [lane[w] for lane in lanes]}


def expected(accesses):
    image = bytearray(PARAMS.smem.size_bytes)
    for access in accesses:
        for lane in access["lanes"]:
            for byte in range(4):
                if lane["strobe"] >> byte & 1:
                    image[16 * lane["chunk"] + 4 * lane["word"] + byte] = lane["data"] >> 8 * byte & 0xFF
    return image


@pytest.mark.parametrize("mode", STALL_MODES)
def test_random(mode):
    rng = random.Random(SEED)
    dut = elaborated(StoreMerger, PARAMS)
    accesses = [access for _ in range(25) for access in random_instruction(rng)]
    accesses.append({"last": 1, "lanes": [NOTHING] * 8})
    image, sent = bytearray(PARAMS.smem.size_bytes), []

    async def source(ctx):
        await send(ctx, dut.i, accesses, idle=STALL_MODES[mode]["idle"], seed=SEED)
        sent.append(True)

    async def sink(ctx):
        while not (sent and ctx.get(dut.idle)):
            ctx.set(dut.o.ready, rng.random() >= STALL_MODES[mode]["stall"])
            _, _, goes, write = await ctx.tick().sample(dut.o.valid & dut.o.ready, dut.o.payload)
            for chunk, data, strobe in zip(write.chunks, write.data, write.strobes, strict=True):
                for byte in range(16):
                    if goes and strobe >> byte & 1:
                        image[16 * chunk + byte] = data >> 8 * byte & 0xFF

    simulate(dut, source, sink, background=[watch_stream(dut.o)])
    assert image == expected(accesses)


def test_four_words_are_one_write_and_take_five_cycles():
    lanes = [words_of(128 * lane, range(16), [0xF] * 16) for lane in range(8)]
    accesses = [{"last": w == 15, "lanes": [lane[w] for lane in lanes]} for w in range(16)]
    payloads, cycles = transact(elaborated(StoreMerger, PARAMS), {"i": accesses}, {"o": 4})
    # The first word of a chunk waits in the register while the chunk before is written.
    assert cycles["i"] == [0, *(n + (n - 1) // 4 for n in range(1, 16))]
    assert cycles["o"] == [5, 10, 15, 20]
    for n, write in enumerate(payloads["o"]):
        assert list(write.chunks) == [8 * lane + n for lane in range(8)]
        assert list(write.strobes) == [0xFFFF] * 8
        assert write.data[0] == sum(4 * n + word << 32 * word for word in range(4))


def test_only_lanes_that_go_on_elsewhere_are_written():
    first = [words_of(16 * lane, [1], [0xF])[0] for lane in range(8)]
    second = [*words_of(4, [2], [0xF]), *words_of(512, [3], [0xF]), *[NOTHING] * 6]
    accesses = [{"last": 0, "lanes": first}, {"last": 1, "lanes": second}]
    payloads, cycles = transact(elaborated(StoreMerger, PARAMS), {"i": accesses}, {"o": 2})
    assert (cycles["i"], cycles["o"]) == ([0, 1], [3, 5])
    early, late = payloads["o"]
    assert list(early.strobes) == [0, 0xF, *[0] * 6]
    assert list(late.strobes) == [0xFF, 0xF, *[0xF] * 6]
    assert list(late.chunks) == [0, 32, 2, 3, 4, 5, 6, 7]
