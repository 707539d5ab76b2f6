"""Calls of the golden model refuse what the machine refuses, with its error record, and say why in one sentence."""

import numpy as np
import pytest

from tilewright import golden
from tilewright.golden import CommandError, Machine, Memory, TensorMap
from tilewright.golden.spec import COMMAND, COMMAND_FIELD, DESCRIPTOR, Error, Opcode

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
def test_what_no_command_can_hold(kind, call, sentence):
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value) == sentence
    assert type(caught.value) is kind or isinstance(caught.value, CommandError)


def test_a_refused_store_changes_nothing():
    gmem = Memory(np.full(256, 0xCD, np.uint8))
    with pytest.raises(CommandError):
        golden.store(TILE, (0, -1), np.zeros(SMEM_BYTES, np.uint8), gmem)
    assert (gmem.data == 0xCD).all()


def test_offsets_may_be_as_many_as_the_walk_has():
    gmem = Memory(np.arange(640, dtype=np.uint16).view(np.uint8))
    short, long = (golden.load(PIXELS, (0, -1, -1, 0), gmem, offsets=o) for o in ((2, 1), (2, 1, 0)))
    assert (short == long).all()
    words = [golden.limits(PIXELS, (0, -1, -1, 0), 16, offsets=o).words for o in ((2, 1), (2, 1, 0))]
    assert words[0] == words[1]


def test_commands_by_name_are_those_by_member():
    assert golden.command_word("reduce", reduction="add") == COMMAND.pack(opcode=Opcode.REDUCE, reduction=1)
    assert golden.command_word(15, smem=3) == COMMAND.pack(opcode=15, smem=3)
