"""Garbage programs: the same for the same seed, of every kind of word, and some of them without a mistake."""

from tilewright.golden import CONV_PRESETS
from tilewright.golden.core.checks import kind_of
from tilewright.golden.spec.core.word import Kind
from tilewright.sim.random.programs import GLOBAL_BYTES, PROGRAM_AT, garbage_programs

SEED = 7
PARAMS = CONV_PRESETS["unit"]


def programs(seed, count):
    return list(garbage_programs(seed, PARAMS, 4096, count))


def kinds(program):
    raw = program.gmem[PROGRAM_AT:].tobytes()
    return [kind_of(int.from_bytes(raw[64 * place : 64 * place + 64], "little")) for place in range(program.words)]


def test_a_seed_gives_the_same_programs():
    first, second = programs(SEED, 20), programs(SEED, 20)
    assert [one.words for one in first] == [other.words for other in second]
    assert all((one.gmem == other.gmem).all() for one, other in zip(first, second, strict=True))
    assert any((one.gmem != other.gmem).any() for one, other in zip(first, programs(SEED + 1, 20), strict=True))


def test_there_are_all_kinds_and_none():
    found = {kind for program in programs(SEED, 200) for kind in kinds(program)}
    assert found == {None, *Kind}


def test_sizes():
    for program in programs(SEED, 200):
        assert len(program.gmem) == GLOBAL_BYTES
        assert 0 <= program.words <= 27
