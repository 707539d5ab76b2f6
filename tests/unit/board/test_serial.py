"""The serial line: bytes to bits and back, each side against a line that the test itself reads or drives."""

import random

import pytest
from amaranth.hdl import Const

from support.selection import grid
from support.streams import recording, responder, transact
from tilewright.board.serial import REPLY_FAILED, REPLY_OKAY, ByteHost, UartReceiver, UartTransmitter
from tilewright.verify.pysim.simulate import simulate
from tilewright.verify.pysim.streams import STALL_MODES

SEED = 3
RNG = random.Random(SEED)
BYTES = [0x00, 0xFF, 0x55, 0xAA, *(RNG.randrange(256) for _ in range(12))]


def transmitted(cycles_per_bit, items, mode="none"):
    """The line in every cycle, and the cycles in which the bytes were accepted."""
    dut, levels = UartTransmitter(cycles_per_bit), []
    background = [recording(levels, Const(1), dut.line)]
    _, cycles = transact(dut, {"i": items}, mode=mode, seed=SEED, background=background, settle=11 * cycles_per_bit)
    return [level for _, level in levels], cycles["i"]


@pytest.mark.parametrize("cycles_per_bit", [4, 25])
@pytest.mark.parametrize("mode", STALL_MODES)
def test_transmitter(mode, cycles_per_bit):
    levels, accepted = transmitted(cycles_per_bit, BYTES, mode)
    expected = [1] * len(levels)
    for byte, cycle in zip(BYTES, accepted, strict=True):
        for place, bit in enumerate([0, *(byte >> bit & 1 for bit in range(8)), 1]):
            first = cycle + 1 + place * cycles_per_bit
            expected[first : first + cycles_per_bit] = [bit] * cycles_per_bit
    assert levels == expected[: len(levels)]


def test_transmitter_full_rate():
    _, accepted = transmitted(6, BYTES)
    assert accepted == list(range(0, 61 * len(BYTES), 61))


async def drive(ctx, line, bits, time_per_bit):
    """Bits that last so many cycles each, which need be no integer."""
    now, until = 0, 0.0
    for bit in bits:
        ctx.set(line, bit)
        until += time_per_bit
        while now < round(until):
            await ctx.tick()
            now += 1


def frame(byte, stop=1):
    return [0, *(byte >> bit & 1 for bit in range(8)), stop]


@grid(lambda off, mode: off == 1.0 or mode == "both", off=[0.97, 1.0, 1.03], mode=STALL_MODES)
def test_receiver(mode, off):
    """The computer's clock is three per cent off, and its bytes have pauses between them or none."""
    dut, cycles_per_bit = UartReceiver(16), 16
    pauses = random.Random(SEED)

    async def computer(ctx):
        for byte in BYTES:
            rest = [1] * (pauses.randrange(3) if STALL_MODES[mode]["idle"] else 0)
            await drive(ctx, dut.line, [*frame(byte), *rest], off * cycles_per_bit)

    payloads, _ = transact(dut, receive={"o": len(BYTES)}, mode=mode, seed=SEED, testbenches=[computer])
    assert payloads["o"] == BYTES


def received(*lines, cycles_per_bit=8, ready=1):
    """Bytes that come of bits, and the cycle of the first one."""
    dut, got = UartReceiver(cycles_per_bit), []

    async def computer(ctx):
        ctx.set(dut.o.ready, ready)
        for bits, time_per_bit in lines:
            await drive(ctx, dut.line, bits, time_per_bit)
        await ctx.tick().repeat(4)

    simulate(dut, computer, background=[recording(got, dut.o.valid, dut.o.payload)])
    return got


def test_receiver_latency():
    assert received((frame(0x5A), 8)) == [(9 * 8 + 4 + 3, 0x5A)]


def test_a_short_start_bit_is_none():
    assert [byte for _, byte in received(([0], 2), ([1], 20), (frame(0x21), 8))] == [0x21]


def test_a_byte_without_stop_bit_is_none():
    assert received((frame(0xA5, stop=0), 8), ([1], 100)) == []


def test_a_byte_behind_one_that_waits_is_lost():
    got = received(([*frame(0x11), *frame(0x22)], 8), ready=0)
    assert {byte for _, byte in got} == {0x11}


@pytest.mark.parametrize("block", [UartReceiver, UartTransmitter])
def test_wrong_parameters(block):
    with pytest.raises(TypeError, match=r"^cycles_per_bit must be an int, not 2.5$"):
        block(2.5)
    for wrong in (3, 65537):
        with pytest.raises(ValueError, match=rf"^cycles_per_bit must be 4 to 65536, not {wrong}$"):
            block(wrong)


HOST_SEED = 8
WORDS = 64
OUTSIDE = 4 * WORDS


def host_frame(op, address, words):
    """A frame: of a read ``words`` is the number of words."""
    head = op + address.to_bytes(4, "little")
    if op == b"R":
        return head + bytes([words - 1])
    return head + bytes([len(words) - 1]) + b"".join(word.to_bytes(4, "little") for word in words)


def run(sent, count, mode="none", contents=None):
    """``count`` bytes of the reply, the accesses, and whether one failed at any time; a memory answers them."""
    dut, seen, failed = ByteHost(), [], []
    contents = [0] * WORDS if contents is None else contents

    async def read_failed(ctx):
        failed.append(ctx.get(dut.failed))

    def reply(item):
        assert item.strobe == 0b1111
        seen.append((item.address, item.write))
        error = item.address >= OUTSIDE
        if item.write and not error:
            contents[item.address // 4] = item.data
        return {"data": 0 if error else contents[item.address // 4], "error": error}

    memory = responder(dut.accesses.requests, dut.accesses.answers, reply, mode, seed=HOST_SEED)
    payloads, _ = transact(dut, {"i": sent}, {"o": count}, mode, seed=HOST_SEED, watch=["accesses.requests"],
                           background=[memory], then=read_failed)  # fmt: skip
    return bytes(payloads["o"]), seen, failed[0]


@pytest.mark.parametrize("mode", STALL_MODES)
def test_writes_and_reads(mode):
    rng = random.Random(HOST_SEED)
    image, sent, expected, accesses = [0] * WORDS, b"", b"", []
    for _ in range(12):
        first = rng.randrange(WORDS)
        count = rng.randint(1, min(8, WORDS - first))
        accesses += [(4 * (first + n), 0) for n in range(count)]
        if rng.getrandbits(1):
            words = [rng.getrandbits(32) for _ in range(count)]
            image[first : first + count] = words
            sent += host_frame(b"W", 4 * first, words)
            accesses[-count:] = [(address, 1) for address, _ in accesses[-count:]]
        else:
            sent += host_frame(b"R", 4 * first, count)
            expected += b"".join(word.to_bytes(4, "little") for word in image[first : first + count])
        expected += bytes([REPLY_OKAY])
    got, seen, failed = run(sent, len(expected), mode)
    assert got == expected
    assert seen == accesses
    assert not failed


def test_the_longest_frames():
    words = [n * 0x0101_0101 for n in range(256)]
    contents = [0] * 256
    dut_range = host_frame(b"W", 0, words[:WORDS]) + host_frame(b"R", 0, WORDS)
    got, _, _ = run(dut_range, 2 + 4 * WORDS, contents=contents)
    assert got == bytes([REPLY_OKAY]) + b"".join(word.to_bytes(4, "little") for word in words[:WORDS]) + b"K"
    got, seen, _ = run(host_frame(b"R", OUTSIDE, 256), 1025)
    assert got == bytes(1024) + bytes([REPLY_FAILED])
    assert [address for address, _ in seen] == list(range(OUTSIDE, OUTSIDE + 1024, 4))


@pytest.mark.parametrize("op", [b"R", b"W"])
def test_one_error_fails_its_frame_alone(op):
    words = 2 if op == b"R" else [1, 2]
    sent = host_frame(op, OUTSIDE - 4, words) + host_frame(b"R", 0, 1)
    got, _, failed = run(sent, 6 + (8 if op == b"R" else 0))
    assert got[-6] == REPLY_FAILED
    assert got[-1] == REPLY_OKAY
    assert failed


def test_bytes_that_are_no_operation_are_skipped():
    got, seen, _ = run(bytes(1030) + b"\xffrw" + host_frame(b"R", 4, 1), 5)
    assert (got, seen) == (bytes(4) + b"K", [(4, 0)])


def test_zeros_end_a_frame_that_was_not_finished():
    """What a computer sends that finds the board in the middle of a frame."""
    half = host_frame(b"W", 0, [1] * 256)[:7]
    got, _, _ = run(half + bytes(1030) + host_frame(b"R", 4, 1), 6, contents=[7] * WORDS)
    assert got == bytes([REPLY_FAILED]) + bytes(4) + b"K"
