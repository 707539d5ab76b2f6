"""Descriptors that must be refused (docs/tmau.md, "Tensor descriptor"), by every command that reads one."""

import pytest

from tilewright.golden.spec import DESCRIPTOR, Error
from tilewright.sim.compare.scoreboard import Scoreboard, refusal_differences
from tilewright.sim.random.good_commands import PIXELS, TILE, pixel_map, tile_map, word_of
from tilewright.sim.session.tmau import TmauSession

KINDS = ("load", "store", "reduce", "prefetch")


def put(name, stored, index=0, word=TILE):
    """A descriptor in which element ``index`` of a field is stored as this number."""
    field = DESCRIPTOR[name]
    lsb, mask = field.lsbs[index], (1 << field.width) - 1
    return word & ~(mask << lsb) | (stored & mask) << lsb


def tile(**fields):
    return word_of(tile_map(**fields))


def pixels(**fields):
    return word_of(pixel_map(**fields))


def cube(**fields):
    """Pixels of a volume: three spatial dimensions."""
    shape = {"size": (16, 4, 4, 4, 2), "stride": (32, 128, 512, 2048), "lower": (0, 0, 0), "upper": (0, 0, 0)}
    return pixels(**shape | fields)


def reserved_bits():
    """First and last bit of every gap between the fields."""
    mask = DESCRIPTOR.reserved_mask
    edges = mask & ~(mask << 1) | mask & ~(mask >> 1)
    return [bit for bit in range(DESCRIPTOR.bits) if edges >> bit & 1]


FLAT = {"size": (32, 16), "stride": (128,), "box": (8, 4), "traversal": (1, 1), "swizzle": "none"}
LINE = {"size": (16, 64, 2), "stride": (32, 2048), "lower": (0,), "upper": (0,)}  # one spatial dimension

#: Descriptors that break one rule, or of several the one that has to be reported.
BAD = [
    *((Error.VERSION, put("version", version)) for version in (0, 2, 255)),
    (Error.VERSION, (1 << DESCRIPTOR.bits) - 1),
    (Error.VERSION, 0),
    *((Error.RESERVED, TILE | 1 << bit) for bit in reserved_bits()),
    *((Error.RANK, put("rank", rank)) for rank in (0, 6, 7)),
    (Error.RANK, tile(**FLAT, interleave="16B")),
    (Error.RANK, put("mode", 1, word=tile(**FLAT))),
    (Error.ELEMENT, put("element", 15)),
    (Error.INTERLEAVE, put("interleave", 3)),
    (Error.FILL, put("fill", 3)),
    *((Error.FILL, tile(element=name, fill="nan")) for name in ("u32", "s32")),
    (Error.FILL, put("traversal", 9, 1, word=put("fill", 3, word=put("address", 0x1008)))),
    *((Error.ADDRESS, put("address", 0x1000 + skew)) for skew in (1, 2, 4, 8)),
    (Error.ADDRESS, tile(address=0x1010, interleave="32B", swizzle="32B")),
    *((Error.ADDRESS, tile(address=0x1000 + skew, unaligned=True)) for skew in (1, 2)),
    *((Error.STRIDE, put("stride", 128 + skew, index)) for skew in (1, 2, 4, 8) for index in (0, 1)),
    (Error.STRIDE, tile(stride=(128 + 16, 2048), interleave="32B", swizzle="32B")),
    (Error.STRIDE, tile(stride=(128 + 2, 2048), unaligned=True)),
    *((Error.BOX, put("box", stored)) for stored in (0, 2, 8, 254)),
    *((Error.TRAVERSAL, put("traversal", stored, index)) for stored in (8, 15) for index in range(3)),
    *((Error.SWIZZLE, tile(box=(box, 4, 4), swizzle=name)) for box, name in ((12, "32B"), (20, "64B"), (36, "128B"))),
    *((Error.SWIZZLE, tile(interleave="32B", swizzle=name)) for name in ("none", "64B", "128B")),
    (Error.SWIZZLE, pixels(channels=24, swizzle="32B")),
    *((Error.UNUSED, put(name, 1, index)) for name in ("size", "box", "traversal") for index in (3, 4)),
    *((Error.UNUSED, put("stride", 16, index)) for index in (2, 3)),
    (Error.UNUSED, put("size", 1, 4, word=PIXELS)),
    *((Error.CORNER, pixels(**{name: corner})) for name in ("lower", "upper") for corner in ((-129, 0), (0, 128))),
    *((Error.CORNER, cube(**{name: corner})) for name in ("lower", "upper") for corner in ((-17, 0, 0), (0, 0, 16))),
    (Error.CORNER, pixels(lower=(7, 0), upper=(-1, 0))),
    (Error.CORNER, pixels(lower=(0, 0), upper=(0, -6))),
    (Error.CORNER, cube(lower=(0, 0, 5), upper=(0, 0, 1))),
    (Error.CORNER, pixels(**LINE | {"lower": (64,)})),
    (Error.CORNER, pixels(**LINE | {"upper": (-(1 << 15),)})),
    *((Error.CHANNELS, pixels(channels=channels)) for channels in (1, 7, 12, 255)),
    *((Error.CHANNELS, pixels(interleave="16B", channels=channels, size=(8, 6, 2, 2))) for channels in (4, 16)),
    (Error.CHANNELS, pixels(interleave="32B", swizzle="32B", channels=8, size=(8, 6, 2, 2))),
]

#: No descriptor word can break these rules; and the rules of commands.
ELSEWHERE = {
    Error.UNSUPPORTED,
    Error.SIZE,
    Error.PIXELS,
    Error.OPCODE,
    Error.DESCRIPTOR_ALIGNMENT,
    Error.DESCRIPTOR_READ,
}


@pytest.fixture(scope="module", params=["unit", pytest.param("default", marks=pytest.mark.long)])
def shared_scoreboard(request):
    with TmauSession(request.param, latency=10, stall=0.2, patience=100_000) as session:
        yield Scoreboard(session)


@pytest.fixture
def scoreboard(shared_scoreboard):
    shared_scoreboard.begin()
    return shared_scoreboard


def test_every_rule_is_here():
    assert {code for code, _ in BAD} == {code for code in Error if 0 < code < Error.COORDS} - ELSEWHERE


@pytest.mark.parametrize(("code", "word"), BAD, ids=[f"{code.name.lower()}-{n}" for n, (code, _) in enumerate(BAD)])
def test_bad_descriptor(scoreboard, code, word):
    """The record is exact; of the kinds of commands, each descriptor meets one."""
    kind = KINDS[BAD.index((code, word)) % len(KINDS)]
    assert refusal_differences(scoreboard, code, scoreboard.command(kind, word=word)) == []


@pytest.mark.parametrize("kind", KINDS)
def test_all_bad_descriptors(scoreboard, kind):
    """One after the other and all at once: each ends with its code, and a good one behind them works."""
    for wait in (True, False):
        scoreboard.begin()
        result = scoreboard.run([scoreboard.command(kind, word=word) for _, word in BAD], wait=wait)
        assert result.differences == []
        assert [error.code for error in result.errors] == [code for code, _ in BAD]
        assert result.run.data_requests + result.run.reducer_requests + result.run.write_requests == 0
        assert (result.run.shared == scoreboard.shared).all()
        assert (result.run.memory == scoreboard.memory).all()
        assert scoreboard.works() == []


def test_a_bad_descriptor_is_read_again(scoreboard):
    """It is not kept: changed into a good one, it works without an invalidation."""
    good = TILE.to_bytes(DESCRIPTOR.bytes, "little")
    scoreboard.poke(0x3000, b"\0" + good[1:])
    command = scoreboard.command("load") | {"descriptor": 0x3000}
    assert [error.code for error in scoreboard.run([command]).errors] == [Error.VERSION]
    scoreboard.clear_errors()
    scoreboard.poke(0x3000, good)
    result = scoreboard.run([command])
    assert result.differences == []
    assert result.errors == []
