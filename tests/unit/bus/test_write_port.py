"""The write port against a memory; rates and latencies. Proofs show the write guard (tests/formal/bus)."""

import random

import numpy as np
import pytest

from support.selection import cases
from support.streams import transact
from tilewright.hw.bus.write_port import WriteGuard, WritePort
from tilewright.verify.pysim.axi import AxiMemory
from tilewright.verify.pysim.simulate import simulate
from tilewright.verify.pysim.streams import STALL_MODES, send


def test_guard_rate():
    """A burst passes in its cycle, its words from the next cycle on; responses pass too."""
    items = {"i.bursts": [{"word": n} for n in range(50)], "i.words": [{"data": n} for n in range(50)]}
    responses = [{"error": 1, "last": 1, "address": n} for n in range(50)]
    payloads, cycles = transact(
        WriteGuard(20, 64),
        items | {"o.responses": responses},
        {"i.responses": 50},
        inputs={"o.bursts.ready": 1, "o.words.ready": 1},
    )
    assert cycles["i.bursts"] == cycles["o.responses"] == cycles["i.responses"] == list(range(50))
    assert cycles["i.words"] == list(range(1, 51))
    assert [{name: payload[name] for name in responses[0]} for payload in payloads["i.responses"]] == responses
    _, cycles = transact(WriteGuard(20, 64), {"o.responses": responses}, {"i.responses": 50}, "stall")
    assert cycles["o.responses"] == cycles["i.responses"]


BUS_BYTES = 16
MEMORY_BYTES = 1 << 16


def new_port(**changes):
    return WritePort(**{"addr_width": 32, "bus_bytes": BUS_BYTES, "max_outstanding": 4, "id_width": 2} | changes)


def some_bursts(count, seed):
    """Random bursts, and the words of each."""
    rng = random.Random(seed)
    bursts = []
    for _ in range(count):
        beats = rng.choice([1, 1, 2, 3, 16])
        empty = rng.random() < 0.2
        burst = {"word": 256 * rng.randrange(16) + rng.randrange(256 - beats + 1), "beats_minus_one": beats - 1}
        burst |= {"empty": empty, "refused": empty and rng.random() < 0.5, "last": rng.random() < 0.5}
        words = [
            {"data": rng.getrandbits(8 * BUS_BYTES), "strobe": rng.getrandbits(BUS_BYTES)}
            for _ in range(0 if empty else beats)
        ]
        bursts.append((burst, words))
    return bursts


def expected(bursts, failing):
    """The final contents of the memory, and the responses (address, last, error)."""
    contents, responses = np.zeros(MEMORY_BYTES, np.uint8), []
    for burst, words in bursts:
        error = burst["refused"]
        for beat, word in enumerate(words):
            start = BUS_BYTES * (burst["word"] + beat)
            error |= start in failing
            for offset in range(BUS_BYTES):
                if word["strobe"] >> offset & 1 and start not in failing:
                    contents[start + offset] = word["data"] >> 8 * offset & 0xFF
        responses.append((BUS_BYTES * burst["word"], burst["last"], error))
    return contents, responses


def write(dut, memory, bursts, mode="none"):
    """Writes ``bursts``; responses (address, last, error), and the cycles of all ports."""
    payloads, cycles = transact(
        dut,
        {
            "writes.bursts": [burst for burst, _ in bursts],
            "writes.words": [word for _, words in bursts for word in words],
        },
        {"writes.responses": len(bursts)},
        mode,
        watch=["requests.o", "beats.o" if dut.beats else "direct"],
        background=[memory.serve_writes],
    )
    responses = payloads["writes.responses"]
    return [(response.address, response.last, response.error) for response in responses], cycles


@cases("stall, mode", [(0.0, "none"), (0.4, "both")], [(0.4, mode) for mode in STALL_MODES if mode != "both"])
@pytest.mark.parametrize("prefer_bram", [False, True])
@pytest.mark.parametrize("direct", [False, True])
def test_contents_and_responses(mode, stall, direct, prefer_bram):
    bursts = some_bursts(60, seed=5)
    written = [BUS_BYTES * (burst["word"] + beat) for burst, words in bursts for beat in range(len(words))]
    dut, contents = new_port(direct=direct, prefer_bram=prefer_bram), np.zeros(MEMORY_BYTES, np.uint8)
    memory = AxiMemory(dut.axi, contents, latency=5, stall=stall)
    memory.failing = set(written[::9])
    came, _ = write(dut, memory, bursts, mode)

    wanted, responses = expected(bursts, memory.failing)
    assert came == responses
    assert (contents == wanted).all()
    requests = [(0, BUS_BYTES * burst["word"], len(words)) for burst, words in bursts if words]
    assert [write[1:] for write in memory.writes] == requests


@pytest.mark.parametrize("direct", [False, True])
def test_full_rate_and_latency(direct):
    """A request is at AW one cycle after its burst was offered; one request, word and response a cycle."""
    dut = new_port(max_outstanding=16, direct=direct)
    memory = AxiMemory(dut.axi, np.zeros(MEMORY_BYTES, np.uint8), latency=5)
    word = {"data": 1, "strobe": 1}
    _, cycles = write(dut, memory, [({"word": n, "beats_minus_one": 0}, [word]) for n in range(100)])
    assert cycles["writes.bursts"] == list(range(100))
    assert [cycle for cycle, *_ in memory.writes] == list(range(1, 101))
    assert np.diff(cycles["writes.responses"]).tolist() == 99 * [1]


def test_channels_do_not_wait_for_each_other():
    """All words of two bursts pass while AW stalls, and both requests while W stalls."""
    burst, word = {"word": 0, "beats_minus_one": 1}, {"data": 1, "strobe": 1}
    for open_channel, count in (("w", 4), ("aw", 2)):
        dut = new_port()
        valid = getattr(dut.axi, f"{open_channel}valid")

        async def transfers(ctx, valid=valid, count=count):
            for _ in range(count):
                await ctx.tick().until(valid)

        items = {"writes.bursts": [burst] * 2, "writes.words": [word] * (4 if open_channel == "w" else 2)}
        transact(dut, items, inputs={f"axi.{open_channel}ready": 1}, testbenches=[transfers], deadline=50)


def test_credit_and_strobes():
    """Without credit the next burst waits; the strobes report it."""
    dut = new_port(max_outstanding=2)

    async def source(ctx):
        await send(ctx, dut.writes.bursts, [{"word": n, "beats_minus_one": 0} for n in range(2)])
        ctx.set(dut.writes.bursts.valid, 1)
        ctx.set(dut.axi.awready, 1)
        *_, stalled, requested, waits = await ctx.tick().sample(dut.stall_credit, dut.aw_stb, dut.stall_aw)
        assert (stalled, requested, waits) == (1, 1, 0)
        ctx.set(dut.axi.awready, 0)
        *_, requested, waits = await ctx.tick().sample(dut.aw_stb, dut.stall_aw)
        assert (requested, waits) == (0, 1)
        ctx.set(dut.axi.bvalid, 1)
        ctx.set(dut.writes.responses.ready, 1)
        await ctx.tick()
        *_, stalled = await ctx.tick().sample(dut.stall_credit)
        assert not stalled

    async def words(ctx):
        await send(ctx, dut.writes.words, [{"data": 1, "strobe": 1}])
        ctx.set(dut.axi.wready, 1)
        *_, written = await ctx.tick().sample(dut.beat_stb)
        assert written

    simulate(dut, source, words)


def test_refused_parameters():
    with pytest.raises(ValueError, match=r"^bus_bytes must be 4, 8, 16, 32 or 64, not 24$"):
        new_port(bus_bytes=24)
