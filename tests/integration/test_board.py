"""A board's design over its serial line, simulated: the same program that talks to a board drives it."""

from dataclasses import replace

import numpy as np
import pytest

from tilewright.board.host import BoardHost, SimulatedLink
from tilewright.board.photograph import FRAME, HEIGHT, WIDTH, move_photograph
from tilewright.board.top import BoardParams
from tilewright.golden import command_word
from tilewright.sim.workloads.photographs import load_photographs
from tilewright.spec.tmau_registers import TMAU_ID_VALUE

#: A design by itself, whose blocks have tests of their own.
pytestmark = pytest.mark.long

PARAMS = replace(BoardParams(), cycles_per_bit=4)


@pytest.fixture(scope="module")
def link():
    with SimulatedLink(PARAMS) as link:
        yield link


def move(link, height):
    photo = load_photographs((height, WIDTH))[0]
    moved = move_photograph(BoardHost(link, PARAMS), PARAMS, photo)
    across, down = FRAME
    assert (moved.framed[down:-down, across:-across] == photo).all()
    frame = moved.framed.copy()
    frame[down:-down, across:-across] = 0
    assert not frame.any()
    return moved


def test_a_strip_of_a_photograph(link):
    moved = move(link, 8)
    assert moved.tiles == 8
    assert moved.cycles > 0


def test_the_photograph(link):
    moved = move(link, HEIGHT)
    # Four tiles a row, seven rows of them: shared memory holds sixteen.
    assert moved.tiles == 28


def test_words_of_every_place(link):
    host = BoardHost(link, PARAMS)
    assert host.register("id") == TMAU_ID_VALUE
    rng = np.random.default_rng(1)
    for place, address in (("shared", 0x7FC0), ("memory", 0x1FFC0), ("memory", 0), ("shared", 4)):
        values = rng.integers(0, 256, 64, np.uint8).tobytes()
        host.write(place, address, values)
        assert host.read(place, address, 64) == values


def test_what_is_refused(link):
    host = BoardHost(link, PARAMS)
    with pytest.raises(RuntimeError, match=r"^the board has answered 0x45 to words of commands from 0x0 on$"):
        host.read("commands", 0, 4)
    host.command(command_word("load", descriptor=0x1000))
    with pytest.raises(RuntimeError, match=r"^a command ended with the error [A-Z_]+$"):
        host.wait()
    BoardHost(link, PARAMS).wait()


def test_half_a_frame_is_ended_by_the_next_program(link):
    link.write(b"W\x00\x00\x02\x00\xff\x12\x34")
    link.drain()
    assert BoardHost(link, PARAMS).register("id") == TMAU_ID_VALUE
