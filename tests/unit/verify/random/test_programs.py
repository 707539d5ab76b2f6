"""Garbage programs: the same for the same seed, of every kind of word, and some of them without a mistake."""

from tilewright.golden import CONV_PRESETS
from tilewright.golden.core.processor import kind_of
from tilewright.spec.cluster import DELIVERY
from tilewright.spec.core import PROGRAM_WORDS, Kind
from tilewright.verify.random.programs import GLOBAL_BYTES, PROGRAM_AT, garbage_pairs, garbage_programs

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


def pairs(seed, count):
    return list(garbage_pairs(seed, CONV_PRESETS["unit"], 4096, count))


def words(pair, core):
    address, count = pair.starts[core]
    raw = pair.gmem[address : address + 64 * count].tobytes()
    return [int.from_bytes(raw[place : place + 64], "little") for place in range(0, len(raw), 64)]


def test_a_seed_gives_the_same_pairs():
    first, second, other = pairs(SEED, 20), pairs(SEED, 20), pairs(SEED + 1, 20)
    assert all(
        (one.gmem == two.gmem).all() and one.starts == two.starts for one, two in zip(first, second, strict=True)
    )
    assert any((one.gmem != two.gmem).any() for one, two in zip(first, other, strict=True))


def test_both_programs_name_cores_and_none_loops_for_long():
    for core in range(2):
        all_words = [word for pair in pairs(SEED, 200) for word in words(pair, core)]
        kinds = [kind_of(word) for word in all_words]
        assert set(kinds) == {None, *Kind}
        named = [DELIVERY.unpack(word) for word, kind in zip(all_words, kinds, strict=True) if kind == Kind.TMAU]
        assert any(bits["multicast"] and bits["cores"] == 3 for bits in named)
        assert any(bits["remote_source"] for bits in named) and any(not bits["multicast"] for bits in named)
        loops = [PROGRAM_WORDS[Kind.LOOP].unpack(word)["count"] for word, kind in zip(all_words, kinds, strict=True)
                 if kind == Kind.LOOP]  # fmt: skip
        assert set(loops) == {0, 1, 2, 3}


def test_cluster_programs_sizes():
    for pair in pairs(SEED, 200):
        assert len(pair.gmem) == GLOBAL_BYTES
        (first, count), (second, others) = pair.starts
        assert first + 64 * count <= second and others <= 27
