"""Realigner: steps meet their words, rotated and swizzled, in every stall mode; errors; latency and rate."""

import random

import pytest

from tilewright.hw.tmau.load.realign import Realigner
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, receive, send, watch_stream

SEED = 13
CONTEXT = {"tag": 7, "signal": 1, "barrier": 64, "bytes": 256, "fill": 0x01020304, "tf32": 1}
KINDS = [
    {"quiet": quiet, "stage": stage, "loop": loop}
    for quiet, stage, loop in [(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 0, 1)]
]


def parameters(bus_bytes, registers):
    """With words in a register in front of the rotator, or without."""
    params = TMAU_PRESETS["unit"].replace(bus_bytes=bus_bytes)
    without = ("reductions_shared",) if registers else ()
    return params.replace(features=tuple(name for name in params.features if name not in without))


def placed(word, rotate, swizzle, line, bus_bytes):
    """The word rotated to the left by so many bytes, its chunks swizzled as those of the line."""
    turned = [word[(byte - rotate) % bus_bytes] for byte in range(bus_bytes)]
    flips = line % (1, 2, 4, 8)[swizzle] % (bus_bytes // 16)
    return int.from_bytes([turned[byte ^ 16 * flips] for byte in range(bus_bytes)], "little")


def random_load(bus_bytes, count):
    """Steps, the words that they pull by source, and what comes of each: step, word, address of an error."""
    rng = random.Random(SEED)
    steps, words, expected = [], {"words": [], "loop": []}, []
    held, first_error, context = None, None, CONTEXT | KINDS[0] | {"swizzle": 2}
    for number in range(count):
        pull = held is None or rng.random() < 0.6
        last, rotate = rng.random() < 0.3, rng.randrange(bus_bytes)
        piece = {"line": number % 8, "first": number % 128, "end": 37 * number % 256, "last": last}
        steps.append({"piece": piece, "pull": pull, "rotate": rotate, "context": context})
        steps[-1]["complement"] = ~rotate & 15
        if pull:
            error, address = rng.random() < 0.2, rng.getrandbits(32)
            held = rng.randbytes(bus_bytes)
            source = words["loop" if context["loop"] else "words"]
            source.append({"data": int.from_bytes(held, "little"), "error": error, "address": address})
            first_error = address if error and first_error is None else first_error
        word = placed(held, rotate, context["swizzle"], number % 8, bus_bytes)
        expected.append((steps[-1], word, first_error))
        if last:
            first_error = first_error if context["quiet"] and not context["stage"] else None
            context = CONTEXT | rng.choice(KINDS) | {"swizzle": rng.randrange(4)}
    return steps, words, expected


def run(params, steps, words, mode="none"):
    dut = elaborated(Realigner, params)
    idle, stall = STALL_MODES[mode]["idle"], STALL_MODES[mode]["stall"]
    result = {"stalls": 0}

    async def send_steps(ctx):
        result["steps"] = await send(ctx, dut.steps, steps, idle=idle, seed=SEED)

    async def send_words(ctx):
        result["words"] = await send(ctx, dut.words, words["words"], idle=idle, seed=SEED + 1)

    async def send_loop(ctx):
        result["loop"] = await send(ctx, dut.loop, words["loop"], idle=idle, seed=SEED + 2)

    async def sink(ctx):
        result["aligned"] = await receive(ctx, dut.aligned, len(steps), stall=stall, seed=SEED)

    async def watch(ctx):
        signals = (dut.steps.valid, dut.steps.payload, dut.words.valid, dut.loop.valid, dut.stall_data)
        async for *_, valid, step, word, loop, stall in ctx.tick().sample(*signals):
            assert stall == (valid and step.pull and not (loop if step.context.loop else word))
            result["stalls"] += stall

    simulate(dut, send_steps, send_words, send_loop, sink, background=[watch_stream(dut.aligned), watch])
    return result


@pytest.mark.parametrize("mode", STALL_MODES)
@pytest.mark.parametrize("registers", [False, True])
@pytest.mark.parametrize("bus_bytes", [16, 32, 64])
def test_words_and_errors(bus_bytes, registers, mode):
    steps, words, expected = random_load(bus_bytes, 150)
    result = run(parameters(bus_bytes, registers), steps, words, mode)
    for came, (step, word, error) in zip(result["aligned"][0], expected, strict=True):
        assert {name: came.piece[name] for name in step["piece"]} == step["piece"]
        assert {name: came.context[name] for name in step["context"]} == step["context"]
        assert came.word == word
        for name in ("first", "end"):
            flips = step["piece"]["line"] % (1, 2, 4, 8)[step["context"]["swizzle"]]
            bound, chunks = step["piece"][name], came.chunks[name]
            assert chunks.whole == sum(1 << (chunk ^ flips) for chunk in range(min(bound // 16, 8)))
            assert chunks.partly == (1 << (bound // 16 ^ flips) if bound < 128 else 0)
        assert came.error == (error is not None)
        assert error is None or came.address == error
    assert (result["stalls"] > 0) == (mode in ("idle", "both"))


@pytest.mark.parametrize("registers", [False, True])
def test_latency_and_full_rate(registers):
    steps, words, _ = random_load(16, 60)
    result = run(parameters(16, registers), steps, words)
    assert result["steps"] == list(range(60))
    assert result["aligned"][1] == list(range(registers, 60 + registers))
    assert [cycle for cycle, step in enumerate(steps) if step["pull"]] == sorted(result["words"] + result["loop"])
