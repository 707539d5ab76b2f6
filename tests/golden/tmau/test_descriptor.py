"""Refusals of descriptor words: rules that only words can break, and their order (others: test_tensor_map.py)."""

import random

import pytest

from tilewright.golden import Refusal, TensorMap, check_word
from tilewright.spec import DESCRIPTOR, Error

SEED = 7


def word_of(**changes):
    """A good descriptor of rank 3 with stored numbers changed: ``name=number``, or ``name=(dimension, number)``."""
    tmap = TensorMap(element="f16", size=(64, 9, 5), stride=(128, 1152), box=(8, 3, 2), swizzle="64B")
    return changed(int.from_bytes(tmap.pack(), "little"), **changes)


def changed(word, **changes):
    for name, number in changes.items():
        index, number = number if isinstance(number, tuple) else (0, number)
        field = DESCRIPTOR[name]
        lsb = field.lsbs[index]
        word = word & ~(((1 << field.width) - 1) << lsb) | number << lsb
    return word


# Stride elements are counted from dimension 1. Numbers are as stored: box, size and traversal minus one.
@pytest.mark.parametrize(
    ("changes", "code", "field", "value"),
    [
        ({"version": 2}, "VERSION", "version", 2),
        ({"rank": 0}, "RANK", "rank", 0),
        ({"rank": 7}, "RANK", "rank", 7),
        ({"element": 15}, "ELEMENT", "element", 15),
        ({"interleave": 3}, "INTERLEAVE", "interleave", 3),
        ({"fill": 3}, "FILL", "fill", 3),
        ({"stride": (0, (1 << 40) - 1)}, "STRIDE", "stride", (1 << 40) - 1),
        ({"traversal": (0, 15)}, "TRAVERSAL", "traversal", 15),
        ({"size": (3, 1)}, "UNUSED", "size", 1),
        ({"box": (4, 200)}, "UNUSED", "box", 200),
        ({"traversal": (3, 9)}, "UNUSED", "traversal", 9),
        ({"stride": (2, 1)}, "UNUSED", "stride", 1),
    ],
)
def test_broken_rule(changes, code, field, value):
    assert check_word(word_of(**changes)) == Refusal(Error[code], DESCRIPTOR.index(field), value)


def test_every_reserved_bit_is_reported():
    reserved = [bit for bit in range(1024) if DESCRIPTOR.reserved_mask >> bit & 1]
    assert len(reserved) == 1024 - (8 + 3 + 1 + 4 + 2 * 4 + 2 + 32 + 64 + 160 + 40 + 20 + 18 + 96 + 160)
    for bit in reserved:
        assert check_word(word_of() | 1 << bit) == Refusal(Error.RESERVED, 0, 0), bit


@pytest.mark.parametrize(
    ("changes", "code", "field", "value"),
    [
        # Lowest code first …
        ({"gather0": 1, "stride": (2, 1), "swizzle": 1, "box": 39}, "SWIZZLE", "swizzle", 1),
        ({"traversal": (1, 8), "box": 6}, "BOX", "box", 6),
        ({"stride": (0, 4), "address": 4, "fill": 3}, "FILL", "fill", 3),
        # … then lowest field …
        ({"stride": (2, 1), "traversal": (3, 1), "box": (3, 1), "size": (4, 7)}, "UNUSED", "size", 7),
        ({"stride": (2, 1), "traversal": (3, 1), "box": (3, 5)}, "UNUSED", "box", 5),
        # … then lowest dimension.
        ({"stride": (0, 4)}, "STRIDE", "stride", 4),
    ],
)
def test_order_of_reports(changes, code, field, value):
    assert check_word(word_of(**changes)) == Refusal(Error[code], DESCRIPTOR.index(field), value)


def test_lowest_dimension_is_reported_of_an_array_field():
    word = changed(word_of(stride=(0, 4)), stride=(1, 8))
    assert check_word(word) == Refusal(Error.STRIDE, DESCRIPTOR.index("stride"), 4)


IM2COL = TensorMap(element="u32", size=(4, 4, 4, 2), stride=(16, 64, 256), mode="im2col", channels=4, pixels=16,
                   lower=(-1, -1), upper=(-1, -2), swizzle="32B")  # fmt: skip
SLICED = TensorMap(element="f16", size=(9, 4, 4), stride=(512, 64), mode="im2col", channels=16, pixels=16,
                   lower=(-1,), upper=(-8,), interleave="32B", swizzle="32B")  # fmt: skip
DEEP = TensorMap(element="u8", size=(16, 9, 9, 9, 2), stride=(16, 64, 256, 512), mode="im2col", channels=16, pixels=1,
                 lower=(-16, 0, 15), upper=(15, -1, 7))  # fmt: skip


def im2col_word(tmap, **changes):
    return changed(int.from_bytes(tmap.pack(), "little"), **changes)


def test_legal_words():
    assert check_word(word_of()) is None
    assert not any(check_word(im2col_word(tmap)) for tmap in (IM2COL, SLICED, DEEP))


@pytest.mark.parametrize(
    ("tmap", "changes", "code", "field", "value"),
    [
        (IM2COL, {"lower": 0xFF7F}, "CORNER", "lower", 0xFF7F),
        (IM2COL, {"lower": (1, 128)}, "CORNER", "lower", 128),
        (IM2COL, {"lower": (1, 0x8000), "upper": 0x8000}, "CORNER", "lower", 0x8000),
        (IM2COL, {"upper": 0xFFFB}, "CORNER", "upper", 0xFFFB),  # begins and ends at -1
        (IM2COL, {"upper": (1, 128)}, "CORNER", "upper", 128),
        (IM2COL, {"lower": 3}, "CORNER", "upper", 0xFFFF),
        (SLICED, {"upper": 0xFFF6}, "CORNER", "upper", 0xFFF6),  # of dimension 0, which is W
        (DEEP, {"lower": (2, 16)}, "CORNER", "lower", 16),
        (DEEP, {"upper": (1, 0xFFEF)}, "CORNER", "upper", 0xFFEF),
        (SLICED, {"channels": 7}, "CHANNELS", "channels", 7),
        (IM2COL, {"channels": 2, "lower": 0x8000}, "CORNER", "lower", 0x8000),
        (IM2COL, {"channels": 2, "box": (4, 1)}, "UNUSED", "box", 1),
    ],
)
def test_broken_im2col_rule(tmap, changes, code, field, value):
    assert check_word(im2col_word(tmap, **changes)) == Refusal(Error[code], DESCRIPTOR.index(field), value)


def test_box_and_corners_of_missing_dimensions_do_not_matter_to_im2col():
    assert check_word(im2col_word(IM2COL, box=3, lower=(2, 0x8000), unaligned=1, channels=2)) is None


def test_im2col_fields_do_not_matter_in_tile_mode():
    assert check_word(word_of(channels=255, pixels=1023, lower=(2, 0xFFFF), upper=0x8000, fill_constant=5)) is None


def test_random_words_are_judged_as_software_judges_them():
    """For any word one of two holds: hardware refuses it, or ``TensorMap.unpack`` takes it."""
    print(f"seed {SEED}")
    rng = random.Random(SEED)
    judged = {True: 0, False: 0}
    for _ in range(2000):
        word = word_of() ^ 1 << rng.randrange(1024) ^ rng.choice([0, 1 << rng.randrange(64)])
        refusal = check_word(word)
        judged[refusal is None] += 1
        if refusal is None:
            assert TensorMap.unpack(word.to_bytes(128, "little")).rank in range(1, 6)
        else:
            with pytest.raises(ValueError, match=r"must be|must make|needs a|takes rows"):
                TensorMap.unpack(word.to_bytes(128, "little"))
    assert min(judged.values()) > 200, judged
