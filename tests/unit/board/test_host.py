"""Frames of bytes become accesses, one at a time, and their answers the bytes of the reply."""

import random

import pytest

from tilewright.hw.board.host import REPLY_FAILED, REPLY_OKAY, ByteHost
from tilewright.sim.pysim.simulate import simulate
from tilewright.sim.pysim.streams import STALL_MODES, receive, send, watch_stream

SEED = 8
WORDS = 64
OUTSIDE = 4 * WORDS


def frame(op, address, words):
    """A frame: of a read ``words`` is the number of words."""
    head = op + address.to_bytes(4, "little")
    if op == b"R":
        return head + bytes([words - 1])
    return head + bytes([len(words) - 1]) + b"".join(word.to_bytes(4, "little") for word in words)


def run(sent, count, mode="none", contents=None):
    """``count`` bytes of the reply, the accesses, and whether one failed at any time; a memory answers them."""
    dut, got, seen, failed = ByteHost(), [], [], []
    contents = [0] * WORDS if contents is None else contents
    stalls = STALL_MODES[mode]

    async def source(ctx):
        await send(ctx, dut.i, sent, idle=stalls["idle"], seed=SEED)

    async def sink(ctx):
        items, _ = await receive(ctx, dut.o, count, stall=stalls["stall"], seed=SEED)
        got.extend(items)
        failed.append(ctx.get(dut.failed))

    async def memory(ctx):
        while True:
            (item,), _ = await receive(ctx, dut.accesses.requests, 1, stall=stalls["stall"], seed=SEED)
            assert item.strobe == 0b1111
            seen.append((item.address, item.write))
            error = item.address >= OUTSIDE
            if item.write and not error:
                contents[item.address // 4] = item.data
            reply = {"data": 0 if error else contents[item.address // 4], "error": error}
            await send(ctx, dut.accesses.answers, [reply], idle=stalls["idle"], seed=SEED)

    simulate(dut, source, sink, background=[memory, watch_stream(dut.o), watch_stream(dut.accesses.requests)])
    return bytes(got), seen, failed[0]


@pytest.mark.parametrize("mode", STALL_MODES)
def test_writes_and_reads(mode):
    rng = random.Random(SEED)
    image, sent, expected, accesses = [0] * WORDS, b"", b"", []
    for _ in range(12):
        first = rng.randrange(WORDS)
        count = rng.randint(1, min(8, WORDS - first))
        accesses += [(4 * (first + n), 0) for n in range(count)]
        if rng.getrandbits(1):
            words = [rng.getrandbits(32) for _ in range(count)]
            image[first : first + count] = words
            sent += frame(b"W", 4 * first, words)
            accesses[-count:] = [(address, 1) for address, _ in accesses[-count:]]
        else:
            sent += frame(b"R", 4 * first, count)
            expected += b"".join(word.to_bytes(4, "little") for word in image[first : first + count])
        expected += bytes([REPLY_OKAY])
    got, seen, failed = run(sent, len(expected), mode)
    assert got == expected
    assert seen == accesses
    assert not failed


def test_the_longest_frames():
    words = [n * 0x0101_0101 for n in range(256)]
    contents = [0] * 256
    dut_range = frame(b"W", 0, words[:WORDS]) + frame(b"R", 0, WORDS)
    got, _, _ = run(dut_range, 2 + 4 * WORDS, contents=contents)
    assert got == bytes([REPLY_OKAY]) + b"".join(word.to_bytes(4, "little") for word in words[:WORDS]) + b"K"
    got, seen, _ = run(frame(b"R", OUTSIDE, 256), 1025)
    assert got == bytes(1024) + bytes([REPLY_FAILED])
    assert [address for address, _ in seen] == list(range(OUTSIDE, OUTSIDE + 1024, 4))


@pytest.mark.parametrize("op", [b"R", b"W"])
def test_one_error_fails_its_frame_alone(op):
    words = 2 if op == b"R" else [1, 2]
    sent = frame(op, OUTSIDE - 4, words) + frame(b"R", 0, 1)
    got, _, failed = run(sent, 6 + (8 if op == b"R" else 0))
    assert got[-6] == REPLY_FAILED
    assert got[-1] == REPLY_OKAY
    assert failed


def test_bytes_that_are_no_operation_are_skipped():
    got, seen, _ = run(bytes(1030) + b"\xffrw" + frame(b"R", 4, 1), 5)
    assert (got, seen) == (bytes(4) + b"K", [(4, 0)])


def test_zeros_end_a_frame_that_was_not_finished():
    """What a computer sends that finds the board in the middle of a frame."""
    half = frame(b"W", 0, [1] * 256)[:7]
    got, _, _ = run(half + bytes(1030) + frame(b"R", 4, 1), 6, contents=[7] * WORDS)
    assert got == bytes([REPLY_FAILED]) + bytes(4) + b"K"
