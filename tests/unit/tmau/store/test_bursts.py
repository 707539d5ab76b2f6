"""The end of stores: one completion a command, the right error; bursts are proved in tests/formal/tmau/store."""

import random

import pytest

from support.streams import transact
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.hw.tmau.store.bursts import StoreFinisher
from tilewright.verify.pysim.simulate import elaborated
from tilewright.verify.pysim.streams import STALL_MODES

SEED = 3


def random_load(count):
    """Ends, responses, and completions: (tag, bytes, error or None), where an error is (write, address)."""
    rng = random.Random(SEED)
    ends, responses, expected, errors = [], [], [], []
    for tag in range(count):
        loop, quiet = rng.random() < 0.3, rng.random() < 0.4 and tag != count - 1
        unreadable = not loop and rng.random() < 0.2
        end = {
            "tag": tag,
            "bytes": rng.randrange(4096),
            "loop": loop,
            "quiet": quiet,
            "error": unreadable,
            "address": tag,
        }
        ends.append(end)
        if loop:
            continue
        if unreadable:
            errors.append((0, tag))
        number = rng.randrange(1, 4)
        for index in range(number):
            response = {"error": rng.random() < 0.2, "last": index == number - 1, "address": rng.getrandbits(32)}
            responses.append(response)
            if response["error"]:
                errors.append((1, response["address"]))
        if not quiet:
            # The first one, but those of reading before those of writing.
            expected.append((tag, end["bytes"], min(errors, key=lambda error: error[0], default=None)))
            errors = []
    return ends, responses, expected


@pytest.mark.parametrize("mode", STALL_MODES)
def test_completions(mode):
    dut, done = elaborated(StoreFinisher, TMAU_PRESETS["unit"]), []
    ends, responses, expected = random_load(150)

    async def watch(ctx):
        completes = dut.completions.valid & dut.completions.ready
        async for _, _, strobe, completed in ctx.tick().sample(dut.done_stb, completes):
            assert strobe or not completed
            done.append(strobe)

    items, counts = {"ends": ends, "responses": responses}, {"completions": len(expected)}
    came, _ = transact(dut, items, counts, mode, background=[watch], settle=10)
    for completion, (tag, count, error) in zip(came["completions"], expected, strict=True):
        assert (completion.tag, completion.bytes, completion.signal) == (tag, count, 0)
        assert completion.error == (error is not None)
        assert error is None or (completion.write, completion.address) == error
    assert sum(done) == len(ends)
