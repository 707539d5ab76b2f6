"""Stores, reductions, blocks, fields and windows on the whole machine: results and refusals."""

import numpy as np
import pytest

from tilewright.golden import (
    ErrorRecord,
    GlobalMemory,
    Machine,
    Refusal,
    TensorMap,
    Windows,
    check_block,
    check_command,
    command_word,
)
from tilewright.golden.memory import mix_pattern
from tilewright.golden.smem import Barrier
from tilewright.spec import (
    COMMAND_FIELD,
    DESCRIPTOR,
    FORMATS,
    TENSOR_OPCODES,
    BarrierOp,
    Element,
    Error,
    Opcode,
    Reduction,
)

GLOBAL, SHARED = 0, 1
SMEM_BYTES, GMEM_BYTES = 2048, 16384
BARRIER_AT = 1024
#: Address of each descriptor, and the map that it stands for.
MAPS = {
    8192: TensorMap(element="u32", size=(16, 8), stride=(64,), box=(4, 2), fill={"constant": 0x04030201}),
    8320: TensorMap(element="u32", size=(4, 5, 6, 2), stride=(16, 80, 480), mode="im2col", channels=4, pixels=9,
                    lower=(-1, 0), upper=(0, -1)),
    8448: TensorMap(element="u32", size=(4, 5, 6), stride=(16, 80), mode="im2col", channels=4, pixels=9, lower=(0,),
                    upper=(1,)),
    8576: TensorMap(element="u8", size=(16, 8), stride=(16,), box=(16, 8), address=GMEM_BYTES - 64),
    8704: TensorMap(element="f64", size=(16, 8), stride=(128,), box=(4, 2)),
}  # fmt: skip
TILE, IM2COL, TALL, LATE, DOUBLE = MAPS


@pytest.fixture
def machine():
    gmem = GlobalMemory(mix_pattern(GMEM_BYTES, 1))
    for address, tmap in MAPS.items():
        gmem.write(address, tmap.pack())
    machine = Machine(gmem, mix_pattern(SMEM_BYTES, 2))
    machine.barrier(BarrierOp.INIT, BARRIER_AT, 1)
    return machine


def refused(machine, opcode, fields):
    """The error record of a command that must change nothing."""
    before = machine.gmem.data.copy(), machine.smem.copy()
    assert machine.execute(command_word(opcode, tag=7, **fields)) is None
    assert (machine.gmem.data == before[0]).all()
    assert (machine.smem == before[1]).all()
    (record,) = machine.errors
    return record


def broken_rule(machine, opcode, fields):
    """The same as a refusal, which has the value too."""
    command = FORMATS[opcode].unpack(command_word(opcode, **fields))
    if "source" in command:
        return check_block(command, SMEM_BYTES, machine.windows)
    address = command["descriptor"]
    written = TensorMap.unpack(machine.gmem.read(address, 128)) if address in MAPS else None
    maps = (None, written) if opcode in TENSOR_OPCODES else (None,)
    return next(filter(None, (check_command(command, tmap, SMEM_BYTES, machine.windows) for tmap in maps)))


def must_refuse(machine, opcode, fields, code, field, value):
    of_descriptor = field.startswith("DESCRIPTOR.")
    fmt = DESCRIPTOR if of_descriptor else FORMATS[opcode]
    number = fmt.index(field.removeprefix("DESCRIPTOR.")) + (0 if of_descriptor else COMMAND_FIELD)
    assert broken_rule(machine, opcode, fields) == Refusal(Error[code], number, value)
    assert refused(machine, opcode, fields) == ErrorRecord(Error[code], 7, number, 0)


def test_store_and_reduction(machine):
    smem, before = machine.smem.view("<u4").copy(), machine.gmem.data.view("<u4").copy()
    assert machine.execute(command_word(Opcode.STORE, descriptor=TILE, coords=(14, 7), smem=128, signal=1)) == 32
    assert (machine.gmem.data.view("<u4")[126:128] == smem[32:34]).all(), "of 2 by 4 elements 1 by 2 are inside"
    word = command_word(Opcode.REDUCE, descriptor=TILE, reduction=Reduction.ADD, smem=0)
    assert machine.execute(word) == 32
    now = machine.gmem.data.view("<u4")
    assert (now[:4] == before[:4] + smem[:4]).all()
    assert (now[16:20] == before[16:20] + smem[4:8]).all()
    assert (now[20:126] == before[20:126]).all()
    assert machine.errors == []


def test_store_of_fill_needs_no_shared_memory(machine):
    word = command_word(Opcode.STORE, descriptor=TILE, coords=(12, 0), smem=3, fill=1)
    assert machine.execute(word) == 32
    assert machine.gmem.data[48:64].tolist() == [1, 2, 3, 4] * 4


def test_prefetches_move_nothing_and_ask_for_no_shared_memory(machine):
    before = machine.smem.copy()
    assert machine.execute(command_word(Opcode.PREFETCH, descriptor=TILE, smem=3, signal=1, barrier=1)) == 0
    assert machine.execute(command_word(Opcode.PREFETCH_BLOCK, source=1 << 63, size=1 << 31)) == 0
    assert (machine.smem == before).all()
    assert machine.errors == []


@pytest.mark.parametrize(
    ("opcode", "fields", "code", "field", "value"),
    [
        ("STORE", {"descriptor": TILE, "coords": (4, -1)}, "COORDS", "coords", 0xFFFFFFFF),
        ("STORE", {"descriptor": TILE, "coords": (0, 0, 1)}, "COORDS", "coords", 1),
        ("STORE", {"descriptor": TILE, "offsets": (0, 1)}, "OFFSETS", "offsets", 1),
        ("STORE", {"descriptor": TILE, "smem": 64}, "SMEM_ALIGNMENT", "smem", 64),
        ("STORE", {"descriptor": TILE, "smem": 2048}, "SMEM_RANGE", "smem", 2048),
        ("REDUCE", {"descriptor": TILE}, "REDUCTION", "reduction", 0),
        ("REDUCE", {"descriptor": TILE, "reduction": 9}, "REDUCTION", "reduction", 9),
        ("REDUCE", {"descriptor": DOUBLE, "reduction": 1}, "REDUCTION", "reduction", 1),
        ("LOAD", {"descriptor": TILE, "offsets": (1,)}, "OFFSETS", "offsets", 1),
        ("LOAD", {"descriptor": IM2COL, "coords": (0, 5, 0, 0)}, "START", "coords", 5),
        ("LOAD", {"descriptor": IM2COL, "coords": (0, -1, -1, 0)}, "START", "coords", 0xFFFFFFFF),
        ("LOAD", {"descriptor": IM2COL, "coords": (0, 4, 5, -9)}, "START", "coords", 5),
        ("PREFETCH", {"descriptor": IM2COL, "coords": (0, 5, 0, 0)}, "START", "coords", 5),
        ("LOAD", {"descriptor": IM2COL, "offsets": (255, 256)}, "OFFSETS", "offsets", 256),
        ("LOAD", {"descriptor": IM2COL, "offsets": (0, 0, 1)}, "OFFSETS", "offsets", 1),
        ("STORE", {"descriptor": IM2COL}, "CORNER", "DESCRIPTOR.lower", 0xFFFF),
        ("REDUCE", {"descriptor": TALL, "reduction": 1}, "CORNER", "DESCRIPTOR.upper", 1),
        ("REPLACE", {"descriptor": TILE + 32}, "DESCRIPTOR_ALIGNMENT", "descriptor", TILE + 32),
        ("REPLACE", {"descriptor": TILE, "field": len(DESCRIPTOR.fields)}, "FIELD", "field", len(DESCRIPTOR.fields)),
        ("REPLACE", {"descriptor": TILE, "field": DESCRIPTOR.index("size"), "index": 5}, "FIELD", "index", 5),
        ("REPLACE", {"descriptor": TILE, "field": 0, "index": 1, "value": 256}, "FIELD", "index", 1),
        ("REPLACE", {"descriptor": TILE, "field": 0, "value": 256}, "FIELD", "value", 256),
    ],
)  # fmt: skip
def test_refused_command_changes_nothing(machine, opcode, fields, code, field, value):
    opcode = Opcode[opcode]
    must_refuse(machine, opcode, fields, code, field, value)


def block(source, destination, size, **fields):
    sides = {"source": source[1], "source_space": source[0]}
    return sides | {"destination": destination[1], "destination_space": destination[0], "size": size} | fields


@pytest.mark.parametrize("source", [GLOBAL, SHARED])
@pytest.mark.parametrize("destination", [GLOBAL, SHARED])
@pytest.mark.parametrize("reduction", [Reduction.NONE, Reduction.MAX])
def test_block_between_any_memories(machine, source, destination, reduction):
    memories = machine.gmem.data, machine.smem
    data, old = memories[source][64:112].copy(), memories[destination][320:368].copy()
    machine.barrier(BarrierOp.EXPECT_TX, BARRIER_AT, 48)
    fields = {"signal": 1, "barrier": BARRIER_AT, "reduction": reduction, "element": Element.S32}
    word = command_word(Opcode.COPY_BLOCK, **block((source, 64), (destination, 320), 48, **fields))
    assert machine.execute(word) == 48
    if reduction:
        data = np.maximum(data.view("<i4"), old.view("<i4")).view(np.uint8)
    assert (memories[destination][320:368] == data).all()
    left = Barrier.read(machine.smem, BARRIER_AT).transactions
    assert left == (0 if destination == SHARED else 48)


def test_empty_block_completes(machine):
    """It does nothing to its barrier, which here a COMPLETE_TX of 0 bytes would complete."""
    Barrier(pending=0, expected=1).write(machine.smem, BARRIER_AT)
    before = machine.smem.copy()
    fields = block((GLOBAL, 1 << 60), (SHARED, 2048), 0, signal=1, barrier=BARRIER_AT)
    assert machine.execute(command_word(Opcode.COPY_BLOCK, **fields)) == 0
    assert machine.errors == []
    assert (machine.smem == before).all()


G, S = GLOBAL, SHARED


@pytest.mark.parametrize(
    ("fields", "code", "field", "value"),
    [
        (block((G, 8), (S, 4), 24), "BLOCK_ALIGNMENT", "size", 24),
        (block((G, 8), (S, 4), 16), "BLOCK_ALIGNMENT", "source", 8),
        (block((G, 16), (S, 4), 16), "BLOCK_ALIGNMENT", "destination", 4),
        (block((G, 0), (G, 4096), 2064), "BLOCK_RANGE", "size", 2064),
        (block((S, 2032), (G, 0), 32), "BLOCK_RANGE", "source", 2032),
        (block((G, 0), (S, 1 << 40), 0), "BLOCK_RANGE", "destination", 1 << 40),
        (block((S, 0), (S, 16), 32), "OVERLAP", "destination", 16),
        (block((G, 16), (G, 16), 16), "OVERLAP", "destination", 16),
        (block((G, 0), (S, 0), 16, signal=1, barrier=4), "BARRIER_ALIGNMENT", "barrier", 4),
        (block((G, 1), (S, 0), 16, signal=1, barrier=2048), "BARRIER_RANGE", "barrier", 2048),
        (block((G, 1), (S, 0), 16, reduction=Reduction.ADD, element=Element.F64), "REDUCTION", "reduction", 1),
        (block((G, 1), (S, 0), 16, reduction=12), "REDUCTION", "reduction", 12),
    ],
)
def test_refused_block(machine, fields, code, field, value):
    must_refuse(machine, Opcode.COPY_BLOCK, fields, code, field, value)


def test_blocks_that_do_not_overlap(machine):
    for fields in (block((S, 0), (S, 32), 32), block((S, 0), (G, 0), 32), block((G, 32), (G, 0), 32, signal=1)):
        assert machine.execute(command_word(Opcode.COPY_BLOCK, **fields)) == 32


@pytest.mark.parametrize("field", [field.name for field in DESCRIPTOR.fields])
def test_replaced_field_holds_the_new_number_and_no_other_bit_changes(machine, field):
    number, fmt = DESCRIPTOR.index(field), DESCRIPTOR[field]
    for index, lsb in enumerate(fmt.lsbs):
        before = int.from_bytes(machine.gmem.read(IM2COL, 128).tobytes(), "little")
        value = 0x5A5A5A5A5A5A5A5A % (1 << fmt.width)
        word = command_word(Opcode.REPLACE, descriptor=IM2COL, field=number, index=index, value=value)
        assert machine.execute(word) == 0
        mask = (1 << fmt.width) - 1 << lsb
        after = int.from_bytes(machine.gmem.read(IM2COL, 128).tobytes(), "little")
        assert after == before & ~mask | value << lsb


def test_replaced_address_is_where_the_next_load_reads(machine):
    number = DESCRIPTOR.index("address")
    assert machine.execute(command_word(Opcode.REPLACE, descriptor=TILE, field=number, value=4096)) == 0
    assert machine.execute(command_word(descriptor=TILE)) == 32
    assert (machine.smem[:16] == mix_pattern(GMEM_BYTES, 1)[4096:4112]).all()


@pytest.mark.parametrize(
    ("opcode", "fields", "failing"),
    [
        ("STORE", {"descriptor": LATE}, GMEM_BYTES),
        ("REDUCE", {"descriptor": LATE, "reduction": Reduction.XOR}, GMEM_BYTES),
        ("COPY_BLOCK", block((S, 0), (G, GMEM_BYTES - 64), 128), GMEM_BYTES),
        ("REPLACE", {"descriptor": 1 << 20, "field": DESCRIPTOR.index("box")}, (1 << 20) + 0x20 & -64),
    ],
)
def test_a_write_error_keeps_the_other_bytes(machine, opcode, fields, failing):
    if opcode == "REDUCE":
        machine.gmem.write(
            LATE, TensorMap(**vars(MAPS[LATE]) | {"element": "u32", "size": (4, 8), "box": (4, 8)}).pack()
        )
    expected = machine.smem[:64].copy()
    if opcode == "REDUCE":
        expected ^= machine.gmem.data[-64:]
    elif opcode == "REPLACE":
        expected = machine.gmem.data[-64:].copy()
    assert machine.execute(command_word(Opcode[opcode], tag=7, **fields)) is None
    assert machine.errors == [ErrorRecord(Error.WRITE, 7, 0, failing)]
    assert (machine.gmem.data[-64:] == expected).all()


def test_read_error_of_a_block(machine):
    word = command_word(Opcode.COPY_BLOCK, tag=7, **block((G, GMEM_BYTES - 16), (S, 0), 32))
    assert machine.execute(word) is None
    assert machine.errors == [ErrorRecord(Error.READ, 7, 0, GMEM_BYTES)]


#: A command, and which address of it the windows below just hold: global 4096 to 12287, shared 256 to 1151.
WINDOWED = [
    ("LOAD", {"descriptor": TILE, "smem": 128}, "smem", 128),
    ("LOAD", {"descriptor": TILE, "smem": 256, "signal": 1, "barrier": 248}, "barrier", 248),
    ("LOAD", {"descriptor": 4032 - 128, "smem": 256}, "descriptor", 4032 - 128),
    ("LOAD", {"descriptor": 12224, "smem": 256}, "descriptor", 12224),
    ("REPLACE", {"descriptor": 3968}, "descriptor", 3968),
    ("PREFETCH_BLOCK", {"source": 12272, "size": 32}, "source", 12272),
    ("COPY_BLOCK", block((G, 4080), (S, 256), 16), "source", 4080),
    ("COPY_BLOCK", block((S, 1136), (G, 4096), 32), "source", 1136),
    ("COPY_BLOCK", block((G, 4096), (S, 240), 16), "destination", 240),
    ("COPY_BLOCK", block((G, 4096), (S, 256), 16, signal=1, barrier=1152), "barrier", 1152),
    ("COPY_BLOCK", block((G, (1 << 64) - 16), (S, 256), 32), "source", (1 << 64) - 16),
]


@pytest.mark.parametrize(("opcode", "fields", "field", "value"), WINDOWED)
def test_windows_refuse_addresses_outside(machine, opcode, fields, field, value):
    machine.gmem.write(TILE, TensorMap(**vars(MAPS[TILE]) | {"address": 4096}).pack())
    machine.windows = Windows(global_=(4097, 12000), shared=(300, 1030))
    opcode = Opcode[opcode]
    must_refuse(machine, opcode, fields, "WINDOW", field, value)


@pytest.mark.parametrize(
    ("address", "inside"),
    [(4096, True), (4080, False), (12288 - 512, True), (12288 - 496, False), ((1 << 64) - 16, False)],
)
def test_global_window_holds_whole_tensors(machine, address, inside):
    machine.gmem.write(TILE, TensorMap(**vars(MAPS[TILE]) | {"address": address}).pack())
    machine.windows = Windows(global_=(4096, 12287))
    if inside:
        assert machine.execute(command_word(descriptor=TILE, smem=0)) == 32
    else:
        must_refuse(machine, Opcode.LOAD, {"descriptor": TILE}, "WINDOW", "DESCRIPTOR.address", address)


def test_windows_hold_their_last_bytes(machine):
    machine.gmem.write(TILE, TensorMap(**vars(MAPS[TILE]) | {"address": 4096}).pack())
    machine.windows = Windows(global_=(4096, 12287), shared=(256, 1151))
    for word in (
        command_word(descriptor=TILE, smem=1024, signal=1, barrier=1144),
        command_word(Opcode.STORE, descriptor=TILE, fill=1),
        command_word(Opcode.COPY_BLOCK, **block((G, 12272), (S, 1136), 16)),
        command_word(Opcode.COPY_BLOCK, **block((G, 0), (S, 0), 0)),
        command_word(Opcode.INVALIDATE, descriptor=0),
    ):
        assert machine.execute(word) is not None
    assert machine.errors == []
