"""Bytes of global memory to words of the simulation and back, with what the hardware has written in between."""

import inspect
import random

import numpy as np
import pytest

from tilewright import golden
from tilewright.sim.session import Session
from tilewright.sim.session.backdoor import GlobalBackdoor

WORD, WORDS, BASE = 16, 8, 0x4000


class _Simulation:
    """An array of words that is loaded and dumped."""

    def __init__(self):
        self.words = np.zeros((WORDS, WORD), np.uint8)

    def load(self, name, first, words):
        assert name == "memory"
        self.words[first : first + len(words)] = words

    def exchange(self, *, dump):
        return {}, {name: self.words[first : first + count].copy() for name, (first, count) in dump.items()}


@pytest.fixture
def memory():
    simulation = _Simulation()
    memory = GlobalBackdoor(simulation, WORD, WORDS)
    memory.base = BASE
    return simulation, memory


def test_any_bytes(memory):
    """Writes of any place and length change those bytes alone, also where the hardware has written."""
    simulation, backdoor = memory
    rng = random.Random(3)
    expected = simulation.words.reshape(-1).copy()
    for _ in range(200):
        start = rng.randrange(len(expected) + 1)
        values = np.frombuffer(rng.randbytes(rng.randrange(len(expected) - start + 1)), np.uint8)
        backdoor.write(BASE + start, values)
        expected[start : start + len(values)] = values
        spot = rng.randrange(len(expected))
        simulation.words.reshape(-1)[spot] = expected[spot] = rng.randrange(256)
        first = rng.randrange(len(expected) + 1)
        count = rng.randrange(len(expected) - first + 1)
        assert (backdoor.read(BASE + first, count) == expected[first : first + count]).all()
    assert (simulation.words.reshape(-1) == expected).all()


@pytest.mark.parametrize(("address", "count"), [(BASE - 1, 2), (BASE + WORD * WORDS, 1), (BASE, WORD * WORDS + 1)])
def test_outside(memory, address, count):
    _, backdoor = memory
    with pytest.raises(IndexError, match=f"^{count} bytes at {address:#x} leave the 128 bytes of global memory$"):
        backdoor.read(address, count)
    with pytest.raises(IndexError, match="leave the 128 bytes of global memory"):
        backdoor.write(address, bytes(count))


MEMORIES = {"gmem", "smem"}
TRANSFERS = ("load", "store", "prefetch", "copy_block", "prefetch_block")


def words(function):
    """Names, defaults and kinds of the parameters of a call, in order; less memories, ``self`` and further options."""
    parameters = inspect.signature(function).parameters.values()
    return [
        (parameter.name, parameter.default, parameter.kind)
        for parameter in parameters
        if parameter.name not in MEMORIES | {"self"} and parameter.kind != parameter.VAR_KEYWORD
    ]


@pytest.mark.parametrize("name", TRANSFERS)
def test_transfers_take_the_same_words(name):
    assert words(getattr(Session, name)) == words(getattr(golden, name))


def test_products_take_the_same_words():
    assert words(Session.multiply) == words(golden.multiply)


def test_a_session_has_every_call_of_the_golden_model_that_moves_something():
    """A call with ``gmem`` or ``smem``, or a prefetch: none is left out above, and none is missing in a session."""
    moving = {
        name
        for name in golden.__all__
        if inspect.isfunction(value := getattr(golden, name))
        and (MEMORIES & set(inspect.signature(value).parameters) or name.startswith("prefetch"))
    }
    assert moving == set(TRANSFERS)
    assert all(hasattr(Session, name) for name in moving)
