"""Loads, stores and prefetches as calls: refusals with the machine's error record, wrong arguments, and examples."""

import numpy as np
import pytest

from tilewright import golden
from tilewright.golden import CommandError, Machine, Memory, TensorMap
from tilewright.spec import COMMAND, COMMAND_FIELD, DESCRIPTOR, Error, Opcode

SMEM_BYTES = 1024
TILE = TensorMap(element="u32", size=(8, 8), stride=(32,), box=(4, 4))
BYTES = TensorMap(element="u8", size=(32, 8), stride=(32,), box=(16, 4))
PIXELS = TensorMap.im2col((2, 5, 4, 8), element="f16", pixels=16, lower=(-1, -1), upper=(-1, -1))
NO_PADDING = TensorMap.im2col((2, 5, 4, 8), element="f16", pixels=16, lower=(0, 0), upper=(1, 0))


def load(tmap, *arguments, **options):
    return golden.load(tmap, *arguments, gmem=Memory(4096), smem=np.zeros(SMEM_BYTES, np.uint8), **options)


def store(tmap, coords, **options):
    return golden.store(tmap, coords, np.zeros(SMEM_BYTES, np.uint8), Memory(4096), **options)


@pytest.mark.parametrize(
    ("call", "tmap", "coords", "options", "code", "sentence"),
    [
        (load, TILE, (0, 0), {"offsets": (1, 1)}, Error.OFFSETS, "offsets must be zero in tile mode, not (1, 1, 0)"),
        (golden.prefetch, TILE, (0, 0), {"offsets": (0, 2)}, Error.OFFSETS,
         "offsets must be zero in tile mode, not (0, 2, 0)"),
        (load, PIXELS, (0, 0, 0, 0), {"offsets": (256, 0)}, Error.OFFSETS,
         "offsets must be 0 to 255 in W H, and no more than these, not (256, 0, 0)"),
        (load, PIXELS, (0, 0, 0, 0), {"offsets": (0, 0, 1)}, Error.OFFSETS,
         "offsets must be 0 to 255 in W H, and no more than these, not (0, 0, 1)"),
        (load, PIXELS, (0, 3, 0, 0), {}, Error.START,
         "coords must start the walk inside its bounding box, from (-1, -1) to before (3, 4), not at (3, 0)"),
        (load, TILE, (0, 0), {"address": 64}, Error.SMEM_ALIGNMENT, "address must be a multiple of 128, not 64"),
        (load, TILE, (0, 0), {"address": 1024}, Error.SMEM_RANGE,
         "address 1024 puts the end of the box at 1088, past the 1024 bytes of smem"),
        (store, TILE, (0, -1), {}, Error.COORDS, "coords must not be negative in a store, as in (0, -1)"),
        (store, BYTES, (0, 0), {"reduction": "add"}, Error.REDUCTION, "reduction add is not defined for u8"),
        (store, PIXELS, (0, 0, 0, 0), {}, Error.CORNER,
         "the map of a store must have lower corners from 0 up and upper ones from 0 down, not (-1, -1) and (-1, -1)"),
        (store, NO_PADDING, (0, 0, 0, 0), {}, Error.CORNER,
         "the map of a store must have lower corners from 0 up and upper ones from 0 down, not (0, 0) and (1, 0)"),
    ],
)  # fmt: skip
def test_a_refusal_is_the_machines_error_record(call, tmap, coords, options, code, sentence):
    with pytest.raises(CommandError) as caught:
        call(tmap, coords, **options)
    error = caught.value
    assert (str(error), error.code) == (sentence, code)

    opcode = {load: Opcode.LOAD, golden.prefetch: Opcode.PREFETCH, store: Opcode.STORE}[call]
    fields = {"smem": options.get("address", 0), "offsets": options.get("offsets", ())}
    if "reduction" in options:
        opcode, fields = Opcode.REDUCE, fields | {"reduction": 1}
    machine = Machine(Memory(4096), np.zeros(SMEM_BYTES, np.uint8))
    assert machine.execute_on(int.from_bytes(tmap.pack(), "little"), opcode, coords=coords, **fields) is None
    record = machine.errors[0]
    assert (*error.refusal[:2], 0) == (record.code, record.field, record.address)
    assert error.value == error.refusal.value
    number = record.field
    fmt = COMMAND if number >= COMMAND_FIELD else DESCRIPTOR
    assert error.field == fmt.fields[number % COMMAND_FIELD].name


@pytest.mark.parametrize(
    ("kind", "call", "sentence"),
    [
        (TypeError, lambda: load(TILE, 3), "coords must be a list or tuple, not 3"),
        (TypeError, lambda: load(TILE, (3.9, 0.9)), "coords must be made of integers, not 3.9"),
        (ValueError, lambda: load(TILE, (3,)), "coords must have 2 entries for rank 2, not 1"),
        (TypeError, lambda: load(b"map", (0, 0)), "tmap must be a TensorMap, not b'map'"),
        (TypeError, lambda: golden.load(TILE, (0, 0), b".."),
         "gmem must be a golden.Memory, which golden.Memory(data) makes, not b'..'"),
        (TypeError, lambda: golden.load(TILE, (0, 0), Memory(256), [1]),
         "smem must be a contiguous one-dimensional uint8 array, not [1]"),
        (ValueError, lambda: load(TILE, (0, 0), address=-128), "address must be 0 to 4294967295, not -128"),
        (TypeError, lambda: load(TILE, (0, 0), address=1.5), "address must be an integer, not 1.5"),
        (ValueError, lambda: load(TILE, (0, 1 << 31)), "coords must be -2^31 to 2^31 - 1, not 2147483648"),
        (ValueError, lambda: golden.load(TILE, (0, 0)),
         "gmem must be given for a map that was not made from an array, not None"),
        (TypeError, lambda: load(TILE, (0, 0), offsets=1), "offsets must be a list or tuple, not 1"),
        (ValueError, lambda: load(PIXELS, (0, 0, 0, 0), offsets=(1, 1, 1, 1)),
         "offsets must have at most 3 entries, W H D, not 4"),
        (ValueError, lambda: load(PIXELS, (0, 0, 0, 0), offsets=(-1, 0)), "offsets must be 0 to 65535, not -1"),
        (TypeError, lambda: golden.store(TILE, (0, 0), None, Memory(256)),
         "smem must be a contiguous one-dimensional uint8 array, not None"),
        (TypeError, lambda: store(TILE, (0, 0), fill=1), "fill must be True or False, not 1"),
        (ValueError, lambda: store(TILE, (0, 0), reduction="sum"),
         "reduction must be one of none, add, min, max, inc, dec, and, or, xor, not 'sum'; did you mean 'add'?"),
        (ValueError, lambda: golden.limits(TILE, (0, 0), 64, offsets=(1,)),
         "offsets must be zero in tile mode, not (1, 0, 0)"),
        (ValueError, lambda: golden.command_word("load", smen=0),
         "a command command has no field 'smen': its fields are opcode, signal, fill, reduction, tag, smem, barrier, "
         "descriptor, coords, offsets; did you mean 'smem'?"),
        (TypeError, lambda: golden.command_word("load", smem="x"), "smem must be an integer, not 'x'"),
    ],
)  # fmt: skip
def test_wrong_arguments(kind, call, sentence):
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value) == sentence
    assert type(caught.value) is kind or isinstance(caught.value, CommandError)


def test_a_refused_store_changes_nothing():
    gmem = Memory(np.full(256, 0xCD, np.uint8))
    with pytest.raises(CommandError):
        golden.store(TILE, (0, -1), np.zeros(SMEM_BYTES, np.uint8), gmem)
    assert (gmem.data == 0xCD).all()


def test_offsets_may_omit_zeros():
    gmem = Memory(np.arange(640, dtype=np.uint16).view(np.uint8))
    short, long = (golden.load(PIXELS, (0, -1, -1, 0), gmem, offsets=o) for o in ((2, 1), (2, 1, 0)))
    assert (short == long).all()
    words = [golden.limits(PIXELS, (0, -1, -1, 0), 16, offsets=o).words for o in ((2, 1), (2, 1, 0))]
    assert words[0] == words[1]


def test_commands_by_name():
    assert golden.command_word("reduce", reduction="add") == COMMAND.pack(opcode=Opcode.REDUCE, reduction=1)
    assert golden.command_word(15, smem=3) == COMMAND.pack(opcode=15, smem=3)


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


def test_coordinates_may_be_numpy_integers_but_not_floats():
    tmap = TensorMap(element="u8", size=(16, 2), stride=(16,), box=(16, 1), address=(1 << 64) - 32)
    tile = golden.tmau.tile.walk(tmap, np.array([0, 1], np.int32))
    assert int(tile.addresses[0]) == (1 << 64) - 16
    with pytest.raises(TypeError, match=r"^coords must be made of integers, not 0.0$"):
        golden.load(tmap, (0.0, 0), Memory(64))


def test_limits_of_a_halo_tile():
    # The named tiles of the benchmark: 30 bus words where pixels adjoin, 100 where they are 128 bytes apart.
    adjoining = TensorMap(element="f16", size=(8, 32, 32), stride=(16, 512), box=(8, 10, 10))
    apart = TensorMap(element="f16", size=(64, 32, 32), stride=(128, 4096), box=(8, 10, 10))
    assert golden.limits(adjoining, (0, 4, 4), 64) == golden.Limits(words=30, rows=100, lines=13, fill_lines=0)
    assert golden.limits(apart, (0, 4, 4), 64) == golden.Limits(words=100, rows=100, lines=13, fill_lines=0)
    assert golden.limits(apart, (0, -20, 0), 64) == golden.Limits(words=0, rows=0, lines=13, fill_lines=13)
    # Rows 0 and 9 of dimension 2 are outside: 160 bytes of fill at either end.
    assert golden.limits(apart, (0, 0, -1), 64) == golden.Limits(words=90, rows=90, lines=13, fill_lines=1)


def test_a_read_outside_memory_is_refused():
    tmap = TensorMap(element="u8", size=(16, 4), stride=(16,), box=(16, 4))
    with pytest.raises(IndexError, match=r"^1 bytes at 0x3f leave the 63 bytes of memory$"):
        golden.load(tmap, (0, 0), Memory(63))
