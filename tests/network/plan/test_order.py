"""No two engines can access a byte in the wrong order, whatever time they take; and the search for races finds some."""

import pytest

from tilewright import network
from tilewright.network.architectures import efficientnet
from tilewright.network.drawn import NetworkMaker
from tilewright.spec import GROUP, Opcode
from tilewright.spec.core import PROGRAM_WORDS, WORD_BITS, Kind
from tilewright.verify.races import find_races

PRESETS = ["unit", "default", *(pytest.param(preset, marks=pytest.mark.long) for preset in ("ecp5", "lean", "full"))]


def small():
    maker = NetworkMaker(4)
    x = maker.conv(maker.input((1, 3, 60, 64)), 32, 3, stride=2)
    y = maker.conv(maker.conv(maker.conv(x, 64), 64, 3, groups=64), 32)
    x = maker.add(y, x)
    x = maker.conv(maker.pool(x, "max", 3, stride=2, pad=1), 200, 3)
    x = maker.concat(1, x, maker.conv(x, 30))
    maker.matrix(maker.reshape(maker.pool(x, "sum", maker.tensors[x].shape[2:]), 1, 230), 50)
    return maker


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("every_tensor", [False, True])
def test_nothing_meets(preset, every_tensor):
    compiled = network.compile(small().graph(), preset, every_tensor=every_tensor)
    assert find_races(compiled.words, compiled.image, compiled.plan.machine.smem_bytes) == []


def test_nothing_meets_in_a_whole_network():
    compiled = network.compile(efficientnet(64).graph(), "ecp5")
    assert find_races(compiled.words, compiled.image, compiled.plan.machine.smem_bytes) == []


def is_wait(word):
    kind = Kind(word >> WORD_BITS - 4)
    if kind == Kind.BARRIER:
        return PROGRAM_WORDS[kind].unpack(word)["operation"] == 4
    return kind == Kind.TMAU and GROUP.unpack(word & (1 << WORD_BITS - 4) - 1)["opcode"] == Opcode.WAIT


def waits_of(words):
    """Numbers of the words that wait."""
    jobs = set()
    for index, word in enumerate(words):
        if word >> WORD_BITS - 4 == Kind.CONV and index not in jobs:
            jobs |= {index + 1, index + 2}
    return [index for index, word in enumerate(words) if index not in jobs and is_wait(word)]


def test_weights_of_one_buffer_are_loaded_when_they_have_been_read():
    """There is one buffer for weights of 16 channels; without one of its waits there is a race."""
    maker = NetworkMaker(3)
    maker.conv(maker.input((1, 512, 7, 7)), 512, 3)
    compiled = network.compile(maker.graph(), "default")
    (_, split), *_ = compiled.plan.tiles[0][0]
    assert split.slots == 1 and not split.resident and len(split.units) == 16
    words, barriers = compiled.words, PROGRAM_WORDS[Kind.BARRIER]
    waits = [index for index in waits_of(words) if barriers.unpack(words[index])["barrier"] in (72, 88, 104)]
    assert len(waits) >= 30
    assert find_races(words, compiled.image, compiled.plan.machine.smem_bytes) == []
    index = waits[len(waits) // 2]
    assert find_races(words[:index] + words[index + 1 :], compiled.image, compiled.plan.machine.smem_bytes)


def test_every_wait_is_needed():
    """Without any one of the waits there is a race, except those that only keep a barrier's phases apart."""
    maker = NetworkMaker(4)
    x = maker.conv(maker.input((1, 3, 30, 32)), 32, 3)
    maker.add(maker.conv(maker.conv(x, 64, 3), 32), x)
    compiled = network.compile(maker.graph(), "ecp5")
    words, smem_bytes = compiled.words, compiled.plan.machine.smem_bytes
    waits = waits_of(words)
    assert len(waits) > 50
    needed = [bool(find_races(words[:index] + words[index + 1 :], compiled.image, smem_bytes)) for index in waits]
    assert sum(needed) > 0.9 * len(waits)
