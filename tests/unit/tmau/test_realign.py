"""Realigner: steps meet their words, rotated, in every stall mode; errors; latency and rate."""

import random

import pytest

from tilewright.hw.tmau.params import PRESETS
from tilewright.hw.tmau.realign import Realigner
from tilewright.sim.pysim import simulate
from tilewright.sim.streams import STALL_MODES, receive, send, watch_stream

SEED = 13
CONTEXT = {"tag": 7, "signal": 1, "barrier": 64, "bytes": 256, "swizzle": 2, "fill": 0x01020304, "tf32": 1}


def random_load(bus_bytes, count):
    """Steps, the words that they pull, and what comes of each: word (None if it has none), error, address."""
    rng = random.Random(SEED)
    bus_width = 8 * bus_bytes
    steps, words, expected = [], [], []
    held, first_error = None, None
    for number in range(count):
        kind = rng.choice(["pull", "pull", "reuse", "fill"] if words else ["pull"])
        last, rotate = rng.random() < 0.3, rng.randrange(bus_bytes)
        piece = {"line": number % 8, "first": number % 128, "last": last}
        steps.append(
            {"piece": piece, "pull": kind == "pull", "reuse": kind == "reuse", "rotate": rotate, "context": CONTEXT}
        )
        if kind == "pull":
            error, address = rng.random() < 0.2, rng.getrandbits(32)
            words.append({"data": rng.getrandbits(bus_width), "error": error, "address": address})
            held = words[-1]["data"]
            first_error = address if error and first_error is None else first_error
        if kind != "fill":
            held = (held << 8 * rotate | held >> bus_width - 8 * rotate) & (1 << bus_width) - 1
        expected.append((piece, held if kind != "fill" else None, last, first_error))
        first_error = None if last else first_error
    return steps, words, expected


def run(bus_bytes, steps, words, mode="none"):
    dut = Realigner(PRESETS["unit"].replace(bus_bytes=bus_bytes))
    idle, stall = STALL_MODES[mode]["idle"], STALL_MODES[mode]["stall"]
    result = {"stalls": 0}

    async def send_steps(ctx):
        result["steps"] = await send(ctx, dut.steps, steps, idle=idle, seed=SEED)

    async def send_words(ctx):
        result["words"] = await send(ctx, dut.words, words, idle=idle, seed=SEED + 1)

    async def sink(ctx):
        result["aligned"] = await receive(ctx, dut.aligned, len(steps), stall=stall, seed=SEED)

    async def watch(ctx):
        signals = (dut.steps.valid, dut.steps.payload.pull, dut.words.valid, dut.stall_data)
        async for *_, valid, pull, word, stall in ctx.tick().sample(*signals):
            assert stall == (valid and pull and not word)
            result["stalls"] += stall

    simulate(dut, send_steps, send_words, sink, background=[watch_stream(dut.aligned), watch])
    return result


@pytest.mark.parametrize("mode", STALL_MODES)
@pytest.mark.parametrize("bus_bytes", [16, 32, 64])
def test_words_and_errors(bus_bytes, mode):
    steps, words, expected = random_load(bus_bytes, 150)
    result = run(bus_bytes, steps, words, mode)
    for came, (piece, word, last, error) in zip(result["aligned"][0], expected, strict=True):
        assert (came.piece.line, came.piece.first, came.piece.last) == (piece["line"], piece["first"], last)
        assert word is None or came.word == word
        assert (came.swizzle, came.fill, came.tf32) == (CONTEXT["swizzle"], CONTEXT["fill"], CONTEXT["tf32"])
        if last:
            assert all(came.completion[name] == CONTEXT[name] for name in ("tag", "signal", "barrier", "bytes"))
            assert came.completion.error == (error is not None)
            assert error is None or came.completion.address == error
    assert (result["stalls"] > 0) == (mode in ("idle", "both"))


def test_latency_one_and_full_rate():
    steps, words, _ = random_load(16, 60)
    result = run(16, steps, words)
    assert result["steps"] == list(range(60))
    assert result["aligned"][1] == list(range(1, 61))
    assert [cycle for cycle, step in enumerate(steps) if step["pull"]] == result["words"]
