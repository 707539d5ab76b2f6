"""Tile loads and their limits: corners that random descriptors do not reach, and wrong arguments."""

import math

import numpy as np
import pytest

from tilewright import golden
from tilewright.golden import Memory, TensorMap, tx_bytes

SEED = 20240611


def test_photograph_tile_of_the_design_document():
    photo = np.random.default_rng(SEED).integers(0, 256, (40, 50, 16), dtype=np.uint8)
    tmap = TensorMap.tiled(photo, box=(16, 10, 10), swizzle="none", fill="zero")
    tile = golden.load(tmap, coords=(0, -1, -1)).reshape(10, 10, 16)
    assert not tile[0].any()
    assert not tile[:, 0].any()
    assert (tile[1:, 1:] == photo[:9, :9]).all()


def test_strided_view_loads_as_numpy_indexes_it():
    whole = np.random.default_rng(SEED).random((12, 8, 16), dtype=np.float32)
    view = whole[::3, 1::2, :8]
    tmap = TensorMap.tiled(view, box=(8, 4, 4), address=0x4000)
    assert (golden.load(tmap, (0, 0, 0)).view(np.float32).reshape(4, 4, 8) == view).all()


def test_coordinates_at_the_ends_of_their_range_are_fill():
    tmap = TensorMap(element="u32", size=(1 << 32,) * 2, stride=(16,), box=(4, 2), fill={"constant": 0x01020304})
    for coords in [(-(1 << 31), 0), (0, -(1 << 31)), (-4, 0), (0, -2)]:
        smem = golden.load(tmap, coords, Memory(64))
        assert smem.tobytes() == bytes([4, 3, 2, 1] * 8)


def test_largest_coordinates_address_their_elements():
    tmap = TensorMap(
        element="u8", size=(1 << 32, 1 << 32), stride=((1 << 40) - 16,), box=(16, 1), address=(1 << 64) - 16
    )
    tile = golden.tmau.tile.walk(tmap, ((1 << 31) - 1, (1 << 31) - 1))
    exact = tmap.address + (1 << 31) - 1 + ((1 << 31) - 1) * ((1 << 40) - 16)
    assert int(tile.addresses[0]) == exact % (1 << 64)
    assert int(golden.tmau.tile.walk(tmap, ((1 << 31) - 1,) * 2, addr_width=48).addresses[0]) == exact % (1 << 48)


def test_fill_is_not_rounded_as_tf32():
    tmap = TensorMap(element="tf32", size=(4,), box=(4,), fill={"constant": 0x3F801001})
    smem = golden.load(tmap, (2,), Memory(np.full(16, 0x3F, np.uint8)))
    assert smem.view(np.uint32).tolist() == [0x3F3F4000, 0x3F3F4000, 0x3F801001, 0x3F801001]


def test_coordinates_may_be_numpy_integers_but_not_floats():
    tmap = TensorMap(element="u8", size=(16, 2), stride=(16,), box=(16, 1), address=(1 << 64) - 32)
    tile = golden.tmau.tile.walk(tmap, np.array([0, 1], np.int32))
    assert int(tile.addresses[0]) == (1 << 64) - 16
    with pytest.raises(TypeError, match=r"^coords must be made of integers, not 0.0$"):
        golden.load(tmap, (0.0, 0), Memory(64))


def test_only_bytes_of_elements_change():
    tmap = TensorMap(element="u8", size=(16, 4), stride=(16,), box=(16, 4), swizzle="128B")
    smem = golden.load(tmap, (0, 0), Memory(np.zeros(64, np.uint8)), np.full(1024, 0xCD, np.uint8), 256)
    # Rows 128 bytes apart from 256 on: chunk 0 of lines 2 to 5 goes to chunk 2 to 5.
    written = {line * 128 + line * 16 + byte for line in range(2, 6) for byte in range(16)}
    assert set(np.flatnonzero(smem == 0).tolist()) == written


def test_limits_of_a_halo_tile():
    # The named tiles of the benchmark: 30 bus words where pixels adjoin, 100 where they are 128 bytes apart.
    adjoining = TensorMap(element="f16", size=(8, 32, 32), stride=(16, 512), box=(8, 10, 10))
    apart = TensorMap(element="f16", size=(64, 32, 32), stride=(128, 4096), box=(8, 10, 10))
    assert golden.limits(adjoining, (0, 4, 4), 64) == golden.Limits(words=30, rows=100, lines=13, fill_lines=0)
    assert golden.limits(apart, (0, 4, 4), 64) == golden.Limits(words=100, rows=100, lines=13, fill_lines=0)
    assert golden.limits(apart, (0, -20, 0), 64) == golden.Limits(words=0, rows=0, lines=13, fill_lines=13)
    # Rows 0 and 9 of dimension 2 are outside: 160 bytes of fill at either end.
    assert golden.limits(apart, (0, 0, -1), 64) == golden.Limits(words=90, rows=90, lines=13, fill_lines=1)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"coords": (0,)}, "coords must have 2 entries for rank 2, not 1"),
        ({"coords": (0, 1 << 31)}, r"coords must be -2\^31 to 2\^31 - 1, not 2147483648"),
        ({"address": 64}, "address must be a multiple of 128, not 64"),
        ({"smem": np.zeros(64, np.uint8), "address": 128},
         "address 128 puts the end of the box at 160, past the 64 bytes of smem"),
        ({"gmem": None}, "gmem must be given for a map that was not made from an array, not None"),
    ],
)  # fmt: skip
def test_wrong_arguments(arguments, sentence):
    tmap = TensorMap(element="u8", size=(16, 4), stride=(16,), box=(16, 2))
    with pytest.raises(ValueError, match=f"^{sentence}$"):
        golden.load(tmap, **({"coords": (0, 0), "gmem": Memory(64)} | arguments))


def test_shared_memory_of_another_kind_is_refused():
    tmap = TensorMap(element="u8", size=(16,), box=(16,))
    with pytest.raises(TypeError, match=r"^smem must be a contiguous one-dimensional uint8 array, not "):
        golden.load(tmap, (0,), Memory(16), np.zeros(64, np.uint16))


def test_a_read_outside_memory_is_refused():
    tmap = TensorMap(element="u8", size=(16, 4), stride=(16,), box=(16, 4))
    with pytest.raises(IndexError, match=r"^1 bytes at 0x3f leave the 63 bytes of memory$"):
        golden.load(tmap, (0, 0), Memory(63))


def test_bytes_of_a_transfer_count_fill_but_not_gaps():
    tmap = TensorMap(element="f16", size=(8, 4, 4), stride=(16, 64), box=(8, 5, 3), traversal=(1, 2, 1), swizzle="64B")
    assert tx_bytes(tmap) == math.prod((8, 3, 3)) * 2
