"""Random maps of every mode: legal by golden, inside the memory they were given, and of every kind."""

import hashlib
import random

import pytest

from tilewright.golden import check_command
from tilewright.golden.tmau.tile import extent, footprint, unit_bytes
from tilewright.spec import COMMAND, Element, Fill, Interleave, Mode, Opcode, Swizzle
from tilewright.verify.random.maps import random_start

SEED = 11
FIRST, END, MOST = 4096, 1 << 16, 2048


@pytest.mark.parametrize("stores", [False, True])
def test_every_start_is_legal_and_fits(stores):
    rng, seen = random.Random(SEED), set()
    opcode = Opcode.STORE if stores else Opcode.LOAD
    for _ in range(400):
        start = random_start(rng, first=FIRST, end=END, most_bytes=MOST, stores=stores)
        tmap = start.tmap
        fields = {"opcode": opcode, "coords": start.coords, "offsets": start.offsets}
        command = COMMAND.unpack(COMMAND.pack(**fields))
        assert check_command(command, tmap, MOST) is None
        assert tmap.address >= FIRST
        assert tmap.address + extent(tmap) <= END
        assert footprint(tmap) <= MOST
        seen |= {(tmap.mode, tmap.rank), (tmap.mode, tmap.interleave), tmap.swizzle, tmap.unaligned, tmap.element}
    assert seen >= {(Mode.TILE, rank) for rank in range(1, 6)} | {(Mode.IM2COL, rank) for rank in range(3, 6)}
    assert seen >= {(mode, interleave) for mode in Mode for interleave in Interleave}
    assert seen >= {*Swizzle, *Element, False, True}


def test_elements_are_those_that_are_asked_for():
    rng = random.Random(SEED)
    starts = [random_start(rng, first=0, end=END, most_bytes=512, elements=[Element.F16]) for _ in range(30)]
    assert {start.tmap.element for start in starts} == {Element.F16}
    assert {bool(start.offsets) for start in starts} == {False, True}


def test_nothing_beyond_silicon():
    rng, seen = random.Random(SEED), set()
    for _ in range(400):
        tmap = random_start(rng, first=FIRST, end=END, most_bytes=MOST, beyond=False).tmap
        assert not tmap.unaligned and not tmap.gather0
        assert tmap.fill == Fill.ZERO or (tmap.fill == Fill.NAN and tmap.element.is_float and tmap.element.bytes > 1)
        granule = max(tmap.interleave.bytes, 16)
        length = tmap.size[0] * unit_bytes(tmap)
        for size, stride in zip(tmap.size[1:], tmap.stride, strict=True):
            assert stride >= length and stride % granule == 0
            length += stride * (size - 1)
        seen |= {tmap.fill, tmap.element, tmap.interleave, tmap.mode}
    assert seen >= {Fill.ZERO, Fill.NAN, *Element, *Interleave, *Mode}


def test_draws_are_those_of_ever():
    """Seeds that once found something find it again: a new option must not change what is drawn without it."""
    rng, digest = random.Random(SEED), hashlib.sha256()
    for stores in (False, True):
        for _ in range(200):
            start = random_start(rng, first=FIRST, end=END, most_bytes=MOST, stores=stores)
            digest.update(start.tmap.pack() + repr((start.coords, start.offsets)).encode())
    assert digest.hexdigest() == "43c81f57a1566501ec733ace0664d78e0760c16f5f276aa401f0715ea0344e7e"
