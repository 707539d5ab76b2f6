"""Windows: commands that reach to their edges work, those that reach beyond are refused whole.

Specification: docs/tmau.md, "Windows".
"""

import numpy as np
import pytest

from support.sessions import session_fixture
from tilewright.golden import Windows
from tilewright.spec import DESCRIPTOR, Error
from tilewright.verify.compare.scoreboard import Scoreboard, refusal_differences
from tilewright.verify.random.commands import TILE, pixel_map, tile_map, word_of

#: Two pages and some lines. The descriptor lies in the second page, behind all that is stored.
FIRST, LAST = 0x1000, 0x2FFF
SHARED_FIRST, SHARED_LAST = 0x180, 0xE7F
PLACE = LAST + 1 - DESCRIPTOR.bytes
BOTH = Windows(global_=(FIRST, LAST), shared=(SHARED_FIRST, SHARED_LAST))
GLOBAL = Windows(global_=(FIRST, LAST))
SHARED = Windows(shared=(SHARED_FIRST, SHARED_LAST))
REGISTERS = ("global_base_lo", "global_base_hi", "global_limit_lo", "global_limit_hi", "shared_base", "shared_limit")

TENSORS = ("load", "store", "reduce", "prefetch")
MOVERS = ("load", "store", "reduce")


scoreboard = session_fixture(
    "unit", engines=["tmau"], latency=10, stall=0.2, patience=100_000, long=["default"], prepare=Scoreboard
)


def tensor(scoreboard, kind, word=TILE, place=PLACE, **fields):
    """A command on a tensor whose descriptor lies in the window; loads signal nothing unless they are told to."""
    scoreboard.poke(place, word.to_bytes(DESCRIPTOR.bytes, "little"))
    command = scoreboard.command(kind, **{"coords": (0, 0, 0), "signal": 0} | fields)
    return command | {"descriptor": place}


def check(scoreboard, windows, make, inside):
    """The command that ``make`` returns once the memories are filled moves what golden moves, or nothing."""
    scoreboard.begin(windows=windows)
    command = make()
    result = scoreboard.run([command])
    assert result.differences == []
    assert [error.code for error in result.errors] == ([] if inside else [Error.WINDOW])
    if not inside:
        run = result.run
        assert run.data_requests + run.reducer_requests + run.write_requests == 0
        assert (run.shared == scoreboard.shared).all()
        assert (run.memory == scoreboard.memory).all()
    if windows.global_:
        first, last = windows.global_
        assert (result.run.memory[:first] == scoreboard.memory[:first]).all()
        assert (result.run.memory[last + 1 :] == scoreboard.memory[last + 1 :]).all()
    if windows.shared:
        first, last = windows.shared
        assert (result.run.shared[:first] == scoreboard.shared[:first]).all()
        assert (result.run.shared[last + 1 :] == scoreboard.shared[last + 1 :]).all()
    # With the windows as they are, another command inside works.
    scoreboard.clear_errors()
    result = scoreboard.run(
        [
            scoreboard.command("invalidate all"),
            tensor(scoreboard, "load", smem=0x200),
            tensor(scoreboard, "store", smem=0x200, coords=(4, 3, 0)),
        ]
    )
    assert result.differences == []
    assert result.errors == []


#: What a tensor's descriptor says, and whether the tensor then lies in two pages.
EXTENTS = {
    "exactly": ({}, True),
    "a row less": ({"size": (32, 15, 4)}, True),
    "begins a chunk before": ({"address": FIRST - 16}, False),
    "ends a chunk behind": ({"address": FIRST + 16}, False),
    "begins a page before": ({"address": FIRST - 0x1000}, False),
    "ends a page behind": ({"address": FIRST + 0x1000}, False),
    "ends an element behind": ({"size": (33, 16, 4)}, False),
    "begins an element before": ({"address": FIRST - 4, "unaligned": True, "size": (1, 1, 1)}, False),
    "is the last element": ({"address": LAST - 3, "unaligned": True, "size": (1, 1, 1), "stride": (0, 0)}, True),
    "ends a byte behind": (
        {"address": LAST - 2, "unaligned": True, "element": "u8", "size": (4, 1, 1), "stride": (1, 1)},
        False,
    ),
    "far before": ({"address": 0}, False),
    "far behind": ({"address": 0x3000_0000}, False),
    "a stride reaches behind": ({"stride": (128, 2064)}, False),
    "wraps around the address space": ({"stride": (128, (1 << 40) - 16)}, False),
    "wraps around 64 bits": ({"address": (1 << 64) - 0x1000, "stride": (16, 1 << 39)}, False),
    "begins behind the address space": ({"address": (1 << 63) + FIRST}, False),
}  # fmt: skip


@pytest.mark.parametrize("case", EXTENTS)
@pytest.mark.parametrize("kind", TENSORS)
def test_tensor(scoreboard, kind, case):
    fields, inside = EXTENTS[case]
    if kind == "reduce" and fields.get("element") == "u8":
        pytest.skip("there is no reduction of bytes")
    word = word_of(tile_map(**{"traversal": (1, 1, 1), "box": (8, 2, 1)} | fields))
    check(scoreboard, GLOBAL, lambda: tensor(scoreboard, kind, word), inside)


@pytest.mark.parametrize("kind", [f"im2col {kind}" for kind in TENSORS])
@pytest.mark.parametrize(("address", "inside"), [(FIRST - 16, False), (FIRST, True), (LAST + 1 - 3072, True),
                                                 (LAST + 17 - 3072, False)])  # fmt: skip
def test_pixels(scoreboard, kind, address, inside):
    """Two images of 3072 bytes in all, and the padding around them, which is not in the tensor."""
    stores = "store" in kind or "reduce" in kind
    word = word_of(pixel_map(address=address, lower=(0, 0) if stores else (-1, -1), pixels=4))
    check(scoreboard, GLOBAL, lambda: tensor(scoreboard, kind, word), inside)


@pytest.mark.parametrize("kind", TENSORS)
@pytest.mark.parametrize(
    ("place", "inside"),
    [(FIRST, True), (FIRST - 64, False), (FIRST - 128, False), (PLACE, True), (PLACE + 64, False), (LAST + 1, False)],
)
def test_descriptor(scoreboard, kind, place, inside):
    """The descriptor itself lies in the window, or is not even read."""
    check(scoreboard, GLOBAL, lambda: tensor(scoreboard, kind, place=place, coords=(4, 8, 1)), inside)
    if not inside:
        scoreboard.begin(windows=GLOBAL)
        assert scoreboard.run([tensor(scoreboard, kind, place=place)]).run.descriptor_requests == 0


@pytest.mark.parametrize(
    ("place", "inside"), [(FIRST, True), (FIRST - 64, False), (LAST - 127, True), (LAST - 63, False), (1 << 63, False)]
)
def test_replace(scoreboard, place, inside):
    check(scoreboard, GLOBAL, lambda: scoreboard.command("replace", descriptor=place), inside)


def test_invalidate_touches_nothing(scoreboard):
    check(scoreboard, GLOBAL, lambda: scoreboard.command("invalidate", descriptor=0), True)


@pytest.mark.parametrize("kind", MOVERS)
@pytest.mark.parametrize(
    ("smem", "inside"),
    [(SHARED_FIRST, True), (SHARED_FIRST - 128, False), (SHARED_LAST + 1 - 512, True), (SHARED_LAST + 1 - 384, False),
     (0, False)],
)  # fmt: skip
def test_lines(scoreboard, kind, smem, inside):
    """A transfer of four lines, which shared memory holds in each of these places."""
    check(scoreboard, SHARED, lambda: tensor(scoreboard, kind, smem=smem), inside)


def test_prefetches_and_fills_use_no_shared_memory(scoreboard):
    check(scoreboard, SHARED, lambda: tensor(scoreboard, "prefetch", smem=0), True)
    check(scoreboard, SHARED, lambda: tensor(scoreboard, "store", smem=0, fill=1), True)


@pytest.mark.parametrize(
    ("barrier", "inside"),
    [(SHARED_FIRST, True), (SHARED_FIRST - 8, False), (SHARED_LAST - 7, True), (SHARED_LAST + 1, False)],
)
def test_barriers(scoreboard, barrier, inside):
    """Of everything that can signal one."""
    state = np.frombuffer((1 | 1 << 20 | 4096 << 40).to_bytes(8, "little"), np.uint8)

    def make(kind, **fields):
        scoreboard.machine.smem[barrier : barrier + 8] = state
        scoreboard.session.shared_memory.write(barrier, state)
        command = tensor(scoreboard, "load", **fields) if kind == "load" else scoreboard.command(kind)
        return command | {"signal": 1, "barrier": barrier}

    check(scoreboard, SHARED, lambda: make("load"), inside)
    for kind in ("copy GS", "copy SS"):
        check(scoreboard, SHARED, lambda kind=kind: make(kind), inside)


#: A side of a block of 256 bytes: its memory, its address, and whether it lies in the windows.
EDGES = [
    *(("G", address, inside) for address, inside in (
        (FIRST, True), (FIRST - 16, False), (LAST - 255, True), (LAST - 239, False), (0, False), (1 << 63, False))),
    *(("S", address, inside) for address, inside in (
        (SHARED_FIRST, True), (SHARED_FIRST - 16, False), (SHARED_LAST - 255, True), (SHARED_LAST - 239, False),
        (0, False))),
]  # fmt: skip
#: Where the other side lies.
MIDDLE = {"G": 0x2200, "S": 0x800}


@pytest.mark.parametrize(("space", "address", "inside"), EDGES)
def test_blocks(scoreboard, space, address, inside):
    """Either side at the edge, the other one in the middle; a block of no bytes is never outside."""
    for other in "GS":
        for side in ("source", "destination"):
            pair = space + other if side == "source" else other + space
            away = {"source": "destination", "destination": "source"}[side]
            fields = {side: address, away: MIDDLE[other], "signal": 0}
            check(scoreboard, BOTH, lambda: scoreboard.command(f"copy {pair}", **fields), inside)  # noqa: B023
            check(scoreboard, BOTH, lambda: scoreboard.command(f"copy {pair}", **fields, size=0), True)  # noqa: B023
    if space == "G":
        check(scoreboard, BOTH, lambda: scoreboard.command("prefetch block", source=address), inside)


@pytest.mark.parametrize(("address", "inside"), [(FIRST, True), (FIRST - 2, False), (LAST + 1 - 180, True),
                                                 (LAST + 3 - 180, False)])  # fmt: skip
def test_lanes_and_global_memory(scoreboard, address, inside):
    """A tensor of 180 bytes."""
    check(scoreboard, GLOBAL, lambda: scoreboard.command("to lanes", source=address), inside)
    check(scoreboard, GLOBAL, lambda: scoreboard.command("from lanes", destination=address), inside)


@pytest.mark.parametrize("kind", ["to lanes", "from lanes", "lanes"])
def test_lanes_are_all_of_shared_memory(scoreboard, kind):
    size = scoreboard.params.smem.size_bytes
    check(scoreboard, Windows(shared=(0, size - 1)), lambda: scoreboard.command(kind), True)
    check(scoreboard, Windows(shared=(128, size - 1)), lambda: scoreboard.command(kind, signal=0), False)
    check(scoreboard, Windows(shared=(0, size - 129)), lambda: scoreboard.command(kind, signal=0), False)


def test_registers(scoreboard):
    """They can be read back, are off after a reset, and cut their low bits."""
    session = scoreboard.session
    scoreboard.begin(windows=BOTH)
    names = [(name,) for name in (*REGISTERS, "windows")]
    seen = [answer.data for answer in session.run(registers=names).registers]
    assert seen == [FIRST, 0, LAST, 0, SHARED_FIRST, SHARED_LAST, 3]
    session.reset()
    assert [answer.data for answer in session.run(registers=names).registers] == [0] * 7
    scoreboard.begin(
        windows=Windows(global_=(FIRST + 0xABC, LAST - 0xABC), shared=(SHARED_FIRST + 0x7F, SHARED_LAST - 0x7F))
    )
    edges = {"source": FIRST, "destination": SHARED_FIRST}, {"source": LAST - 255, "destination": SHARED_LAST - 255}
    result = scoreboard.run([scoreboard.command("copy GS", **places, signal=0) for places in edges])
    assert result.differences == []
    assert result.errors == []


def test_without_windows_everything_may_be_touched(scoreboard):
    scoreboard.begin(windows=BOTH)
    scoreboard.session.run(registers=[("windows", 0)])
    scoreboard.machine.windows = Windows()
    result = scoreboard.run(
        [scoreboard.command("copy GS", source=0, destination=0, signal=0), scoreboard.command("store")]
    )
    assert result.differences == []
    assert result.errors == []


def test_an_empty_window_holds_nothing(scoreboard):
    """Its end lies before its beginning, or its beginning behind the memory."""
    width, size = scoreboard.params.addr_width, scoreboard.params.smem.size_bytes
    for windows in (
        Windows(global_=(LAST + 1, FIRST - 1)),
        Windows(global_=(1 << width, (1 << 64) - 1)),
        Windows(shared=(SHARED_LAST + 1, SHARED_FIRST - 1)),
        Windows(shared=(size, (1 << 32) - 1)),
    ):
        scoreboard.begin(windows=windows)
        result = scoreboard.run([scoreboard.command(kind) for kind in ("load", "copy GS", "copy SG", "to lanes")])
        assert result.differences == []
        assert [error.code for error in result.errors] == [Error.WINDOW] * 4
        assert (result.run.shared == scoreboard.shared).all()
        assert (result.run.memory == scoreboard.memory).all()


def test_the_window_up_to_the_end_of_memory(scoreboard):
    """A block or tensor that would wrap is outside even where the window has no end."""
    end = 1 << scoreboard.params.addr_width
    windows = Windows(global_=(0, (1 << 64) - 1))
    for make in (
        lambda: scoreboard.command("copy GS", source=end - 128),
        lambda: scoreboard.command("copy SG", destination=end - 16),
        lambda: scoreboard.command("prefetch block", source=end),
        lambda: scoreboard.command("to lanes", source=end - 178),
        lambda: scoreboard.command("load", word=word_of(tile_map(address=end - 8192 + 16))),
        lambda: scoreboard.command("store", word=word_of(tile_map(address=end - 4096))),
        lambda: scoreboard.command("load") | {"descriptor": end - 64},
    ):
        scoreboard.begin(windows=windows)
        assert refusal_differences(scoreboard, Error.WINDOW, make()) == []
