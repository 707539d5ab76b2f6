"""The realigner on wide buses: words, rotated and swizzled, and errors; latency and rate.

The narrow bus, bounds and stalls are proved in tests/formal/tmau/load/test_realign.py.
"""

import random

import pytest

from support.streams import transact
from tilewright.hw.tmau.load.realign import Realigner
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.verify.pysim.simulate import elaborated

SEED = 13
CONTEXT = {"tag": 7, "signal": 1, "barrier": 64, "bytes": 256, "fill": 0x01020304, "tf32": 1}
KINDS = [
    {"quiet": quiet, "stage": stage, "loop": loop}
    for quiet, stage, loop in [(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 0, 1)]
]


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


def run(bus_bytes, count, mode):
    steps, words, expected = random_load(bus_bytes, count)
    dut = elaborated(Realigner, TMAU_PRESETS["unit"].replace(bus_bytes=bus_bytes))
    came, cycles = transact(dut, {"steps": steps, **words}, {"aligned": count}, mode, seed=SEED)
    return came["aligned"], cycles, expected


@pytest.mark.parametrize("bus_bytes", [32, 64])
def test_words_and_errors(bus_bytes):
    came, _, expected = run(bus_bytes, 150, "both")
    for aligned, (step, word, error) in zip(came, expected, strict=True):
        for part in ("piece", "context"):
            assert {name: aligned[part][name] for name in step[part]} == step[part]
        assert (aligned.word, aligned.error) == (word, error is not None)
        assert error is None or aligned.address == error


def test_one_step_a_cycle():
    _, cycles, expected = run(16, 60, "none")
    assert cycles["steps"] == cycles["aligned"] == list(range(60))
    pulls = [cycle for cycle, (step, _, _) in enumerate(expected) if step["pull"]]
    assert pulls == sorted(cycles["words"] + cycles["loop"])
