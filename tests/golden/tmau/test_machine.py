"""Commands on the whole machine: refusals, barriers, and read errors."""

import numpy as np
import pytest

from tilewright.golden import ErrorRecord, GlobalMemory, Machine, TensorMap, command_word
from tilewright.golden.smem import Barrier
from tilewright.spec import COMMAND, COMMAND_FIELD, DESCRIPTOR, BarrierOp, Error, Opcode
from tilewright.spec.cluster import ClusterError
from tilewright.spec.tmau_registers import TMAU_REGISTERS

SMEM_BYTES = 2048
BARRIER_AT = 1024


@pytest.fixture
def machine():
    """A machine with a tensor of 16 by 8 bytes at 0, its descriptor at 1024, and a barrier that waits for one."""
    gmem = GlobalMemory(4096)
    gmem.place(np.arange(128, dtype=np.uint8))
    gmem.write(1024, TensorMap(element="u8", size=(16, 8), stride=(16,), box=(16, 4)).pack())
    machine = Machine(gmem, np.full(SMEM_BYTES, 0xCD, np.uint8))
    machine.barrier(BarrierOp.INIT, BARRIER_AT, 1)
    return machine


def load(**changes):
    return command_word(**{"descriptor": 1024, "tag": 9} | changes)


def field(name):
    return COMMAND_FIELD + COMMAND.index(name)


def test_load(machine):
    assert machine.execute(load(coords=(0, 2), smem=128)) == 64
    assert machine.smem[128:192].tolist() == list(range(32, 96))
    assert machine.errors == []


@pytest.mark.parametrize(
    ("changes", "record"),
    [
        ({"opcode": 0}, ErrorRecord(Error.OPCODE, 9, field("opcode"), 0)),
        ({"opcode": 15, "descriptor": 1}, ErrorRecord(Error.OPCODE, 9, field("opcode"), 0)),
        ({"descriptor": 1056}, ErrorRecord(Error.DESCRIPTOR_ALIGNMENT, 9, field("descriptor"), 0)),
        ({"opcode": Opcode.INVALIDATE, "descriptor": 32},
         ErrorRecord(Error.DESCRIPTOR_ALIGNMENT, 9, field("descriptor"), 0)),
        ({"descriptor": 4032}, ErrorRecord(Error.DESCRIPTOR_READ, 9, 0, 4032)),
        ({"descriptor": 64}, ErrorRecord(Error.VERSION, 9, DESCRIPTOR.index("version"), 0)),
        ({"coords": (0, 0, 0, -2, 5)}, ErrorRecord(Error.COORDS, 9, field("coords"), 0)),
        ({"smem": 64}, ErrorRecord(Error.SMEM_ALIGNMENT, 9, field("smem"), 0)),
        ({"smem": SMEM_BYTES}, ErrorRecord(Error.SMEM_RANGE, 9, field("smem"), 0)),
        ({"smem": 0xFFFFFF80}, ErrorRecord(Error.SMEM_RANGE, 9, field("smem"), 0)),
        ({"signal": 1, "barrier": 1028}, ErrorRecord(Error.BARRIER_ALIGNMENT, 9, field("barrier"), 0)),
        ({"signal": 1, "barrier": SMEM_BYTES}, ErrorRecord(Error.BARRIER_RANGE, 9, field("barrier"), 0)),
        # The lowest code wins.
        ({"coords": (0, 0, 7), "smem": 1, "signal": 1, "barrier": 1}, ErrorRecord(Error.COORDS, 9, field("coords"), 0)),
        ({"smem": SMEM_BYTES + 8}, ErrorRecord(Error.SMEM_ALIGNMENT, 9, field("smem"), 0)),
    ],
)  # fmt: skip
def test_a_refused_command_moves_nothing_and_the_next_one_works(machine, changes, record):
    before = machine.smem.copy()
    assert machine.execute(load(**changes)) is None
    assert machine.errors == [record]
    assert (machine.smem == before).all()
    assert machine.execute(load()) == 64


def test_a_load_may_end_with_shared_memory(machine):
    machine.gmem.write(1024, TensorMap(element="u8", size=(16, 8), stride=(16,), box=(16, 8)).pack())
    assert machine.execute(load(smem=SMEM_BYTES - 128)) == 128
    machine.gmem.write(1024, TensorMap(element="u8", size=(16, 8), stride=(16,), box=(16, 2), swizzle="128B").pack())
    assert machine.execute(load(smem=SMEM_BYTES - 128)) is None
    assert machine.errors[0].code == Error.SMEM_RANGE


def test_an_unused_barrier_is_not_checked(machine):
    assert machine.execute(load(barrier=3)) == 64


@pytest.mark.parametrize(
    "word",
    [
        command_word(Opcode.INVALIDATE, descriptor=64, smem=3, coords=(0, 0, 1), signal=1, barrier=1),
        command_word(Opcode.INVALIDATE_ALL, count=3),
        command_word(Opcode.COMMIT),
        command_word(Opcode.WAIT, count=1, read=1),
        command_word(Opcode.WAIT_ALL),
    ],
)
def test_commands_without_transfers_ignore_other_fields(machine, word):
    before = machine.smem.copy()
    assert machine.execute(word) == 0
    assert (machine.smem == before).all()
    assert machine.errors == []


def test_landed_bytes_complete_the_barrier(machine):
    assert machine.barrier(BarrierOp.EXPECT_TX, BARRIER_AT, 128) is False
    assert machine.barrier(BarrierOp.ARRIVE, BARRIER_AT, 1) is False
    assert machine.execute(load(signal=1, barrier=BARRIER_AT)) == 64
    assert machine.barrier(BarrierOp.TRY_WAIT, BARRIER_AT, 0) is False
    assert machine.execute(load(signal=1, barrier=BARRIER_AT, coords=(0, -100))) == 64
    assert machine.barrier(BarrierOp.TRY_WAIT, BARRIER_AT, 0) is True


def test_a_misaligned_barrier_is_refused(machine):
    before = machine.smem.copy()
    for op in BarrierOp:
        assert machine.barrier(op, BARRIER_AT + 4, 1) is None
        assert machine.errors.pop() == (Error.BARRIER_OPERATION, 0, 0, BARRIER_AT + 4, range(0))
    assert (machine.smem == before).all()


def test_barrier_operation_out_of_range_is_recorded(machine):
    assert machine.barrier(BarrierOp.ARRIVE, BARRIER_AT, 2) is None
    Barrier(pending=1, expected=1, transactions=-(1 << 20)).write(machine.smem, BARRIER_AT)
    assert machine.execute(load(signal=1, barrier=BARRIER_AT)) == 64, "the bytes have landed"
    assert machine.errors == [ErrorRecord(Error.BARRIER_OPERATION, 0, 0, BARRIER_AT)] * 2


@pytest.mark.parametrize(("address", "bus_bytes", "failing"), [(4048, 64, 4096), (4048, 16, 4096), (8208, 64, 8192)])
def test_a_failed_read_names_the_first_failing_word_and_leaves_the_barrier(machine, address, bus_bytes, failing):
    machine.bus_bytes = bus_bytes
    machine.gmem.write(1024, TensorMap(element="u8", size=(16, 8), stride=(16,), box=(16, 8), address=address).pack())
    barrier = machine.smem[BARRIER_AT:][:8].copy()
    assert machine.execute(load(signal=1, barrier=BARRIER_AT)) is None
    assert machine.errors == [ErrorRecord(Error.READ, 9, 0, failing)]
    assert (machine.smem[BARRIER_AT:][:8] == barrier).all()


def test_addresses_wrap(machine):
    machine.addr_width = 16
    tmap = TensorMap(element="u8", size=(16, 8), stride=(1 << 16,), box=(16, 4), address=(5 << 16) + 16)
    machine.gmem.write(1024, tmap.pack())
    assert machine.execute(load(descriptor=(3 << 16) + 1024)) == 64
    assert machine.smem[:64].tolist() == [*range(16, 32)] * 4


@pytest.mark.parametrize("code", [*Error, *ClusterError])
def test_records_from_registers(code):
    fields = next(register for register in TMAU_REGISTERS if register.name == "error").format
    word = fields.pack(code=int(code), tag=9, field=3)
    record = ErrorRecord.of_registers(word, 0x1000, 2)
    assert record == ErrorRecord(code, 9, 3, 0x2_0000_1000)
    assert type(record.code) is type(code)
