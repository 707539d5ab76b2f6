"""Descriptors that must be refused (docs/tmau.md, "Tensor descriptor"), by every command that reads one."""

import pytest

from support.sessions import session_fixture
from tilewright.spec import DESCRIPTOR, BarrierOp, Element, Error, LaneLayout, Reduction
from tilewright.verify.compare.scoreboard import Scoreboard, refusal_differences
from tilewright.verify.random.commands import GOOD, PIXELS, TILE, WAITING, pixel_map, tile_map, word_of

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


shared_scoreboard = session_fixture(
    "unit", engines=["tmau"], latency=10, stall=0.2, patience=100_000, long=["default"], prepare=Scoreboard
)


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


ONES = (1 << 32) - 1

TENSORS = ("load", "store", "reduce", "prefetch")
WRITERS = ("store", "reduce")
MOVERS = ("load", *WRITERS)  # use shared memory
PIXELWISE = tuple(f"im2col {kind}" for kind in TENSORS)
COPIES = ("copy GG", "copy GS", "copy SG", "copy SS")
IN_LANES = ("to lanes", "from lanes", "lanes")
LANDING = ("load", "copy GS", "copy SS", "to lanes", "lanes")  # can signal


def cases(code, kinds, *changes):
    """Each kind with each of these changes of its good command; a function gets the size of shared memory."""
    return [(code, kind, change) for kind in kinds for change in changes]


ERRORS_BAD = [
    *((Error.OPCODE, "load", {"opcode": opcode}) for opcode in (0, 14, 15)),
    *cases(Error.DESCRIPTOR_ALIGNMENT, (*TENSORS, "replace", "invalidate"), {"skew": 1}, {"skew": 32}, {"skew": 4}),
    *cases(Error.COORDS, TENSORS, {"coords": (4, 1, 1, 1)}, {"coords": (4, 1, 1, 0, -(1 << 31))}),
    *cases(Error.COORDS, PIXELWISE, {"coords": (0, 1, 2, 0, 1)}),
    *cases(Error.COORDS, WRITERS, {"coords": (-1, 1, 1)}, {"coords": (4, 1, -(1 << 31))}),
    *cases(Error.COORDS, ("im2col store", "im2col reduce"), {"coords": (-1, 3, 2)}, {"coords": (0, 3, 2, -1)}),
    *cases(Error.START, PIXELWISE, {"coords": (0, 7, 2)}, {"coords": (0, 3, 5)}, {"coords": (0, (1 << 31) - 1, 2)}),
    *cases(Error.START, ("im2col load", "im2col prefetch"), {"coords": (0, -2, 2)}, {"coords": (0, 0, -(1 << 31))}),
    *cases(Error.CORNER, ("im2col store", "im2col reduce"), {"word": PIXELS},
           {"word": word_of(pixel_map(lower=(0, 0), upper=(0, 1)))}),
    *cases(Error.SMEM_ALIGNMENT, MOVERS, {"smem": 0x401}, {"smem": 0x440}, {"smem": ONES}),
    *cases(Error.SMEM_RANGE, MOVERS, {"smem": lambda size: size - 384}, {"smem": lambda size: size},
           {"smem": 1 << 31}),
    *cases(Error.BARRIER_ALIGNMENT, LANDING, {"barrier": WAITING + 1}, {"barrier": WAITING + 4}),
    *cases(Error.BARRIER_RANGE, LANDING, {"barrier": lambda size: size}, {"barrier": 1 << 31}),
    *cases(Error.OFFSETS, ("load", "store", "reduce", "prefetch"), {"offsets": (1,)}, {"offsets": (0, 0, 1 << 15)}),
    *cases(Error.OFFSETS, ("im2col load", "im2col prefetch"), {"offsets": (256, 0)}, {"offsets": (0, 0, 1)}),
    *cases(Error.OFFSETS, ("im2col store", "im2col reduce"), {"offsets": (1,)}, {"offsets": (0, 0, 1)}),
    *cases(Error.REDUCTION, ("reduce",), {"reduction": 0}, {"reduction": 9}, {"reduction": 15}),
    *cases(Error.REDUCTION, ("im2col reduce",), {"reduction": Reduction.AND}, {"reduction": Reduction.INC}),
    *cases(Error.REDUCTION, COPIES, {"reduction": 9}, {"reduction": 15},
           {"reduction": Reduction.ADD, "element": Element.F64}, {"reduction": Reduction.ADD, "element": 15}),
    *cases(Error.BLOCK_ALIGNMENT, COPIES, {"size": 8}, {"size": ONES},
           *({name: 0xC00 + skew} for name in ("source", "destination") for skew in (1, 8))),
    *cases(Error.BLOCK_ALIGNMENT, ("prefetch block",), {"size": 8}, {"source": 0x3008}),
    *cases(Error.BLOCK_ALIGNMENT, IN_LANES, {"source": 0x201}, {"destination": 0x101}),
    *cases(Error.BLOCK_ALIGNMENT, ("to lanes",), {"destination": 0x108}),
    *cases(Error.BLOCK_ALIGNMENT, ("lanes",), {"source": 0x108}),
    *cases(Error.BLOCK_RANGE, COPIES, {"size": lambda size: size + 16}, {"size": ONES & ~15}),
    *((Error.BLOCK_RANGE, kind, {name: change})
      for kind, name in (("copy GS", "destination"), ("copy SG", "source"), ("copy SS", "source"),
                         ("copy SS", "destination"))
      for change in (lambda size: size - 240, lambda size: size, (1 << 64) - 256)),
    *((Error.BLOCK_RANGE, kind, {name: change})
      for kind, name in (("to lanes", "destination"), ("from lanes", "source"), ("lanes", "source"))
      for change in (lambda size: size // 4 - 32, lambda size: size // 4, (1 << 64) - 16)),
    *cases(Error.BLOCK_RANGE, IN_LANES, {"shape": (65536,) * 4}),
    *cases(Error.OVERLAP, ("copy GG",), {"destination": 0x30F0}, {"destination": 0x2F10}, {"destination": 0x3000}),
    *cases(Error.OVERLAP, ("copy SS",), {"destination": 0x8F0}, {"destination": 0x710}, {"destination": 0x800}),
    *cases(Error.OVERLAP, ("lanes",), {"destination": 0x100}, {"destination": 0x13E}),
    *cases(Error.ELEMENT, IN_LANES, {"element": 15}),
    *cases(Error.LANES, IN_LANES, {"eu_log2": 8, "shape": (1, 1, 4, 1)}, {"eu_log2": 0}, {"source_lane": 4},
           {"lanes_log2": 7, "shape": (1, 1, 1, 1), "eu_log2": 1, "source": 0, "destination": 16},
           {"destination_lane": 4}),
    *cases(Error.LANES, ("to lanes",), {"destination_layout": LaneLayout.GLOBAL}, {"source_lane": 1}),
    *cases(Error.LANES, ("from lanes",), {"destination_lane": 1}),
    *cases(Error.FIELD, ("replace",), {"field": 20}, {"field": 255}, {"field": 0, "index": 1}, {"value": 1 << 32},
           {"field": 12, "index": 5}, {"field": 1, "value": 8}),
]  # fmt: skip

#: Codes that each kind of command can be refused with, descriptors, windows and the bus apart.
_TENSOR = {Error.DESCRIPTOR_ALIGNMENT, Error.COORDS, Error.OFFSETS}
_SHARED = {Error.SMEM_ALIGNMENT, Error.SMEM_RANGE}
_SIGNAL = {Error.BARRIER_ALIGNMENT, Error.BARRIER_RANGE}
_PIXELS = {Error.COORDS, Error.OFFSETS, Error.START}
_BLOCK = {Error.REDUCTION, Error.BLOCK_ALIGNMENT, Error.BLOCK_RANGE}
_LANES = {Error.ELEMENT, Error.BLOCK_ALIGNMENT, Error.BLOCK_RANGE, Error.LANES}
MEETS = {
    "load": _TENSOR | _SHARED | _SIGNAL | {Error.OPCODE},
    "im2col load": _PIXELS,
    "store": _TENSOR | _SHARED,
    "im2col store": _PIXELS | {Error.CORNER},
    "reduce": _TENSOR | _SHARED | {Error.REDUCTION},
    "im2col reduce": _PIXELS | {Error.CORNER, Error.REDUCTION},
    "prefetch": _TENSOR,
    "im2col prefetch": _PIXELS,
    "copy GG": _BLOCK | {Error.OVERLAP},
    "copy GS": _BLOCK | _SIGNAL,
    "copy SG": _BLOCK,
    "copy SS": _BLOCK | _SIGNAL | {Error.OVERLAP},
    "prefetch block": {Error.BLOCK_ALIGNMENT},
    "to lanes": _LANES | _SIGNAL,
    "from lanes": _LANES,
    "lanes": _LANES | _SIGNAL | {Error.OVERLAP},
    "replace": {Error.DESCRIPTOR_ALIGNMENT, Error.FIELD},
    "invalidate": {Error.DESCRIPTOR_ALIGNMENT},
}


def names(bad):
    return [f"{code.name.lower()}-{kind.replace(' ', '_')}-{number}" for number, (code, kind, _) in enumerate(bad)]


@pytest.mark.parametrize(("code", "kind", "change"), ERRORS_BAD, ids=names(ERRORS_BAD))
def test_bad_command(scoreboard, code, kind, change):
    assert refusal_differences(scoreboard, code, scoreboard.command(kind, **change)) == []


@pytest.mark.parametrize("kind", GOOD)
def test_every_error_of_a_kind_is_here(kind):
    assert {code for code, other, _ in ERRORS_BAD if other == kind} == MEETS.get(kind, set())


def test_of_several_broken_rules_the_lowest_code(scoreboard):
    for code, kind, change in (
        (Error.DESCRIPTOR_ALIGNMENT, "load", {"skew": 8, "coords": (0, 0, 0, 1), "smem": 1, "barrier": 1}),
        (Error.COORDS, "load", {"coords": (0, 0, 0, 1), "smem": 1, "barrier": ONES, "offsets": (1,)}),
        (Error.SMEM_ALIGNMENT, "store", {"smem": ONES, "offsets": (1,)}),
        (Error.BARRIER_ALIGNMENT, "copy SS", {"barrier": ONES, "reduction": 15, "size": 8, "destination": 0x800}),
        (Error.REDUCTION, "copy GG", {"reduction": 15, "size": ONES, "destination": 0x3001}),
        (Error.BLOCK_ALIGNMENT, "copy SS", {"size": ONES, "source": ONES, "destination": ONES}),
        (Error.BLOCK_RANGE, "copy SS", {"size": 1 << 31, "destination": 0x800}),
        (Error.ELEMENT, "lanes", {"element": 15, "lanes_log2": 15, "source": ONES, "barrier": ONES}),
        (Error.OVERLAP, "lanes", {"lanes_log2": 0, "eu_log2": 0, "destination": 0x100, "source_lane": 9}),
        (Error.DESCRIPTOR_ALIGNMENT, "replace", {"skew": 8, "field": 255}),
        (Error.START, "im2col load", {"coords": (0, 7, 2), "smem": 1, "offsets": (ONES & 0xFFFF,)}),
        (Error.CORNER, "im2col store", {"word": PIXELS, "coords": (-1, 9, 2, 0, 1), "smem": 1}),
    ):
        scoreboard.begin()
        assert refusal_differences(scoreboard, code, scoreboard.command(kind, **change)) == []


def test_a_good_command_of_each_kind(scoreboard):
    """What the bad ones are made of works, alone and all together."""
    for kind in GOOD:
        result = scoreboard.run([scoreboard.command(kind)])
        assert result.differences == []
        assert result.errors == []
    assert scoreboard.run([scoreboard.command(kind) for kind in GOOD]).differences == []


def test_bad_commands_between_good_ones(scoreboard):
    """Refused ones do not hold up or harm those in flight around them; all are counted, the first is recorded."""
    bad = [scoreboard.command(kind, **change) for _, kind, change in ERRORS_BAD[::5]]
    good = [scoreboard.command(kind) for kind in ("load", "copy GS", "to lanes", "im2col load")]
    result = scoreboard.run(
        [command for pair in zip(bad, good * len(bad), strict=False) for command in pair], wait=False
    )
    assert result.differences == []
    assert len(result.errors) == len(bad)
    assert result.run.registers[-2].data == len(bad)


def test_a_cleared_record_takes_the_next_error(scoreboard):
    for code, kind, change in ERRORS_BAD[:40:13]:
        assert refusal_differences(scoreboard, code, scoreboard.command(kind, **change)) == []
        scoreboard.clear_errors()
        assert scoreboard.works() == []


@pytest.mark.parametrize(
    ("operation", "value"),
    [
        (BarrierOp.INIT, 0),
        (BarrierOp.INIT, 1 << 20),
        (BarrierOp.ARRIVE, 0),
        (BarrierOp.ARRIVE, 2),
        (BarrierOp.EXPECT_TX, (1 << 20) - 1),
        (BarrierOp.COMPLETE_TX, (1 << 21) - 1),
    ],
)
def test_bad_barrier_operation(scoreboard, operation, value):
    """It is refused without any effect on the barrier; the operation before it counts."""
    operations = [(BarrierOp.EXPECT_TX, WAITING, 1), (operation, WAITING, value)]
    result = scoreboard.run([], barriers=operations)
    assert result.differences == []
    assert [answer.error for answer in result.run.barriers] == [False, True]
    assert [error.code for error in result.errors] == [Error.BARRIER_OPERATION]
    assert scoreboard.works() == []


@pytest.mark.parametrize("kind", LANDING)
def test_landing_on_a_barrier_whose_count_is_at_its_end(scoreboard, kind):
    """The bytes have landed, but the barrier refuses to count them: an error of the barrier, with tag 0."""
    scoreboard.run([], barriers=[(BarrierOp.COMPLETE_TX, WAITING, 1 << 19), (BarrierOp.COMPLETE_TX, WAITING, 1 << 20)])
    result = scoreboard.run([scoreboard.command(kind)])
    assert result.differences == []
    assert [error.code for error in result.errors] == [Error.BARRIER_OPERATION]
    assert result.run.flips == []
