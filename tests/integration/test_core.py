"""Both engines at once: the TMAU brings what the processing engine multiplies; golden models agree on every byte."""

import numpy as np
import pytest

from tilewright import golden
from tilewright.golden import Machine, Memory, Pe, command_word, instruction_word
from tilewright.golden.pe.machine import Fault
from tilewright.hw.core import CORE_PRESETS
from tilewright.hw.core.params import ENGINES, core_params
from tilewright.hw.pe.pager import PAGER_TAG
from tilewright.sim.session import Session
from tilewright.sim.session.products import CoreProduct
from tilewright.spec import BarrierOp, Error, Opcode, Space, Swizzle
from tilewright.spec.pe import PAGE_ENTRY, PE_ID_VALUE, MmType, Operation, PeError, Put
from tilewright.spec.tmau_registers import TMAU_ID_VALUE

A, B, C, TABLE = range(4)  # segments of a product
FAR = 8192  # behind all products
HALT = instruction_word(Operation.HALT)
SEED = 4


# With all engines it is the model that other tests need too.
@pytest.fixture(
    scope="module",
    params=[core_params("unit", ENGINES), pytest.param(CORE_PRESETS["unit"], marks=pytest.mark.long)],
    ids=["all", "two"],
)
def shared_session(request):
    with Session(params=request.param, latency=20, memory_bytes=1 << 16) as session:
        yield session


@pytest.fixture
def session(shared_session):
    shared_session.clear()
    shared_session.configure(latency=20, stall=0.0, issue_stall=0.0, seed=1)
    fill(shared_session)
    return shared_session


def fill(session):
    """Random bytes in all of shared memory."""
    size = len(session.shared_memory)
    session.shared_memory.write(0, np.random.default_rng(SEED).integers(0, 256, size, np.uint8))


class Scoreboard:
    """Golden models of both engines on copies of a session's memories, as they are now."""

    def __init__(self, session):
        self._session = session
        self.smem = session.shared_memory.read(0, len(session.shared_memory)).copy()
        self.gmem = session.global_memory.read(0, len(session.global_memory)).copy()
        self.tmau = Machine(Memory(self.gmem), self.smem)
        self.pe = Pe(self.smem, session.params.pe)

    def compare(self):
        """All bytes of both memories."""
        assert (self._session.shared_memory.read(0, len(self.smem)) == self.smem).all()
        assert (self._session.global_memory.read(0, len(self.gmem)) == self.gmem).all()


def matrices(m, k, n):
    rng = np.random.default_rng(SEED)
    return (rng.integers(-128, 128, shape, np.int8) for shape in ((m, k), (k, n)))


def holds_product(session, product, a, b):
    """Whether C in global memory is what numpy makes of A and B."""
    c = session.global_memory.read(product.c_address, 4 * len(a) * b.shape[1]).view(np.int32)
    return (c.reshape(len(a), -1) == a.astype(np.int32) @ b.astype(np.int32)).all()


def watched(run):
    """The run, which kept every rule of the bus and had no error."""
    assert run.finished
    assert run.violations == () and run.late == ()
    assert [stamp.error for stamp in run.commands] == [Error.NONE] * len(run.commands)
    return run


def multiply(session, product, scoreboard=None, limit=None):
    """Brings all operands while program and processor wait for their barrier; then takes C away.

    Returns the run of the program, which ends after ``limit`` cycles.
    """
    barrier = len(session.shared_memory) - 8
    operands = [move for segment in (A, B, TABLE) for move in product.moves[segment]]
    total = sum(golden.tx_bytes(move.tmap) for move in operands)
    loads = [move.command(session.descriptor(move.tmap), signal=1, barrier=barrier) for move in operands]
    stores = [move.command(session.descriptor(move.tmap), store=True) for move in product.moves[C]]
    operations = [(BarrierOp.INIT, barrier, 1), (BarrierOp.EXPECT_TX, barrier, total), (BarrierOp.ARRIVE, barrier, 1)]
    words = [instruction_word(Operation.BAR_WAIT, imm=barrier), *product.program.words]
    placement = product.program.placement
    segments = {index: segment.pack() for index, segment in enumerate(placement.segments)}
    if scoreboard is not None:
        for operation in operations:
            scoreboard.tmau.barrier(operation[0], *operation[1:])
        for load in loads:
            scoreboard.tmau.execute(command_word(**load))
        placement.load(scoreboard.pe)
        scoreboard.pe.run(words)
        for store in stores:
            scoreboard.tmau.execute(command_word(**store))
        assert scoreboard.pe.faults == [] and scoreboard.tmau.errors == []
    watched(session.run(segments=segments, pages=dict(enumerate(placement.entries)), barriers=operations))
    run = session.run(loads, program=words, barriers=[(BarrierOp.TRY_WAIT, barrier, 0, True)], limit=limit)
    if limit is None:
        assert watched(run).faults == [] and len(run.halts) == 1
        assert [address for _, address in run.flips] == [barrier]
        assert run.barriers[0].done and run.flips[0][0] < run.barriers[0].cycle < run.halts[0]
        watched(session.run(stores))
    return run


@pytest.mark.parametrize("stall", [0.0, 0.4])
@pytest.mark.parametrize("transpose", [0, 1])
def test_product_of_operands_from_global_memory(session, transpose, stall):
    session.configure(stall=stall, issue_stall=stall, seed=7)
    a, b = matrices(8, 64, 16)
    product = CoreProduct(a, b, MmType.S8S8, session.params, session.place, transpose=transpose)
    list(map(session.descriptor, (move.tmap for moves in product.moves for move in moves)))
    scoreboard = Scoreboard(session)
    multiply(session, product, scoreboard)
    scoreboard.compare()
    assert holds_product(session, product, a, b)


@pytest.mark.parametrize("transpose", [0, 1])
@pytest.mark.parametrize("swizzle", [Swizzle.B128, Swizzle.NONE])
def test_a_swizzle_avoids_bank_conflicts(session, transpose, swizzle):
    a, b = matrices(4, 64, 16)
    product = CoreProduct(a, b, MmType.S8S8, session.params, session.place, transpose=transpose, swizzle=swizzle)
    multiply(session, product)
    assert holds_product(session, product, a, b)
    conflicts = session.read_register("pe", "bank_conflicts")
    assert conflicts == session.read_register("tmau", "bank_conflicts")
    if swizzle == Swizzle.B128:
        assert conflicts == 0
    else:
        assert conflicts > 0


def move_page(session, put):
    """Has the pager do something, and waits until it has."""
    run = session.run(registers=put)
    assert not any(answer.response for answer in run.registers)
    while session.read_register("pe", "status") >> 2 & 1:
        pass


def test_pages_come_while_the_program_waits_and_go_by_request(session):
    a, b = matrices(4, 32, 8)
    rows = (None, 2, 1)  # two pages of B, four columns each; two of C, two rows each
    product = CoreProduct(a, b, MmType.S8S8, session.params, session.place, page_rows=rows, paged=True)
    placement = product.program.placement
    segments = {index: segment.pack() for index, segment in enumerate(placement.segments)}
    late = [product.entry(B, move) for move in product.moves[B]]
    pages = dict(enumerate(placement.entries)) | dict.fromkeys(late, PAGE_ENTRY.pack(valid=1))
    loads = [move.command(session.descriptor(move.tmap)) for segment in (A, TABLE) for move in product.moves[segment]]
    page_loads = [command_word(**move.command(session.descriptor(move.tmap))) for move in product.moves[B]]
    page_stores = [command_word(**move.command(session.descriptor(move.tmap), store=True)) for move in product.moves[C]]
    scoreboard = Scoreboard(session)
    for load in loads:
        scoreboard.tmau.execute(command_word(**load))
    placement.load(scoreboard.pe)

    watched(session.run(loads, segments=segments, pages=pages))
    puts = []
    for move, load in zip(product.moves[B], page_loads, strict=True):
        scoreboard.tmau.execute(load)
        # The second one is put when the first must have come.
        puts += [("pe", "status")] * 100 * bool(puts)
        puts += session.put(Put.PAGE_IN, product.entry(B, move), load, address=move.smem)
    # The TMAU has work of the processor's all the while, far from the product.
    spaces = {"source_space": Space.GLOBAL, "destination_space": Space.SHARED}
    copies = [
        {"opcode": Opcode.COPY_BLOCK, "source": 128 * number, "destination": FAR + 64 * number, "size": 128} | spaces
        for number in range(100)
    ]
    for copy in copies:
        scoreboard.tmau.execute(command_word(**copy))
    run = watched(session.run(copies, program=product.program.words, registers=[("pe", "status")] * 30 + puts))
    scoreboard.pe.run(product.program.words)
    assert not any(answer.response for answer in run.registers)
    assert run.faults == [] and run.halts[0] > run.registers[-1].cycle
    assert run.commands[-1].done > run.halts[0]
    scoreboard.compare()

    for move, store in zip(product.moves[C], page_stores, strict=True):
        move_page(session, session.put(Put.PAGE_OUT, product.entry(C, move), store))
        scoreboard.tmau.execute(store)
        scoreboard.pe.write_page(product.entry(C, move), 0)
    dropped = product.entry(A, product.moves[A][0])
    move_page(session, session.put(Put.PAGE_DROP, dropped))
    scoreboard.pe.write_page(dropped, 0)
    assert holds_product(session, product, a, b)

    # Now there are no pages of A and of C any more: the program meets that, and writes nothing.
    again = session.run(program=product.program.words)
    scoreboard.pe.run(product.program.words)
    assert again.faults == scoreboard.pe.faults
    assert {fault.code for fault in again.faults} == {PeError.UNMAPPED}
    scoreboard.compare()
    error = session.read_register("pe", "error")
    first = scoreboard.pe.faults[0]
    assert Fault(PeError(error & 0xFF), session.read_register("pe", "error_number"), *first[2:]) == first


def test_a_page_that_does_not_come_leaves_its_entry(session):
    """The pager's command fails: the interrupt tells, the record names the pager's tag, and the program still waits."""
    a, b = matrices(4, 32, 4)
    product = CoreProduct(a, b, MmType.S8S8, session.params, session.place, paged=True)
    placement = product.program.placement
    segments = {index: segment.pack() for index, segment in enumerate(placement.segments)}
    (move,) = product.moves[B]
    entry = product.entry(B, move)
    pages = dict(enumerate(placement.entries)) | {entry: PAGE_ENTRY.pack(valid=1)}
    good = move.command(session.descriptor(move.tmap))
    loads = [move.command(session.descriptor(move.tmap)) for segment in (A, TABLE) for move in product.moves[segment]]
    watched(session.run(loads, segments=segments, pages=pages, registers=[("tmau", "irq_enable", 1)]))
    bad = session.put(Put.PAGE_IN, entry, command_word(**good | {"smem": move.smem + 64}), address=move.smem)
    put = session.put(Put.PAGE_IN, entry, command_word(**good), address=move.smem)
    checks = [("tmau", "error"), ("tmau", "error_count")]
    wait = [("pe", "status")] * 60
    run = session.run(program=product.program.words, registers=[*bad, *wait, *checks, *put])
    error, count = run.registers[len(bad) + len(wait) :][:2]
    assert error.data & 0xFF == Error.SMEM_ALIGNMENT and error.data >> 16 == PAGER_TAG | entry and count.data == 1
    assert run.irq
    assert run.faults == [] and run.halts[0] > run.registers[-1].cycle
    watched(session.run([move.command(session.descriptor(move.tmap), store=True) for move in product.moves[C]]))
    assert holds_product(session, product, a, b)


def test_reset_in_the_middle_of_both(session):
    a, b = matrices(4, 32, 8)
    product = CoreProduct(a, b, MmType.S8S8, session.params, session.place)
    whole = multiply(session, product).cycles
    for limit in range(5, whole, whole // 12):
        assert not multiply(session, product, limit=limit).finished
    session.global_memory.write(product.c_address, bytes(4 * 4 * 8))
    fill(session)
    scoreboard = Scoreboard(session)
    session.reset()
    multiply(session, product, scoreboard)
    scoreboard.compare()
    assert holds_product(session, product, a, b)


def test_registers(session):
    assert session.read_register("tmau", "id") == TMAU_ID_VALUE
    assert session.read_register("pe", "id") == PE_ID_VALUE
    assert session.read_register("pe", "params3") == session.read_register("tmau", "params2")
    # Either engine raises the interrupt.
    session.run(program=[HALT], registers=[("pe", "irq_enable", 2)])
    assert session.run(registers=[("pe", "irq_status")]).irq
    session.run(registers=[("pe", "irq_status", 2), ("tmau", "irq_enable", 2)])
    assert not session.run(registers=[("pe", "irq_status")]).irq
    watched(session.run([command_word(Opcode.INVALIDATE_ALL)]))
    assert session.run(registers=[("tmau", "irq_status")]).irq


def test_a_refused_barrier_operation_is_in_the_record_of_the_tmau(session):
    (answer,) = session.run(barriers=[(BarrierOp.INIT, 64, 0)]).barriers
    assert answer.error
    assert session.read_register("tmau", "error") & 0xFF == Error.BARRIER_OPERATION
    assert session.read_register("pe", "error") == 0


def test_mistakes():
    with pytest.raises(ValueError, match=r"^the preset must be one of unit, ecp5, default, lean, full, not 'tiny'$"):
        Session("tiny")


def test_calls_of_the_golden_model(session):
    """A core takes what a session of the access unit takes, and a ``Program`` as a processing engine does."""
    photo = np.random.default_rng(SEED).integers(0, 256, (8, 8, 16), np.uint8)
    tmap = golden.TensorMap.tiled(photo, box=(16, 4, 4))
    run = session.load(tmap, (0, -1, 2), 128)
    assert (run.shared[128 : 128 + 256] == golden.load(tmap, (0, -1, 2))).all()
    stored = session.store(tmap, (0, 0, 0), 128, memory=(session.bind(tmap).address, photo.size))
    assert (stored.memory == golden.store(tmap, (0, 0, 0), run.shared, golden.Memory(photo.tobytes()), 128).data).all()
    with pytest.raises(golden.CommandError, match=r"^offsets must be zero in tile mode, not \(1, 0, 0\)$"):
        session.load(tmap, (0, 0, 0), offsets=(1,))

    a, b = np.arange(12, dtype=np.int8).reshape(3, 4), np.arange(8, dtype=np.int8).reshape(4, 2)
    size = len(session.shared_memory)
    program = golden.gemm_program(a, b, "s8s8", sizes=session.params.pe, size_bytes=size)
    run = watched(session.run(program=program, shared=True))
    assert (program.product(run.shared) == a.astype(np.int32) @ b.astype(np.int32)).all()
    assert repr(run).endswith("; 1 halts, 0 faults; product of shape (3, 2) and int32")
    assert session.registers("pe")["id"] == PE_ID_VALUE
    session.write_register("pe", "irq_enable", 2)
    assert session.read_register("pe", "irq_enable") == 2
    engines = "tmau, pe, conv, program" if session.params.program else "tmau, pe"
    with pytest.raises(ValueError, match=f"^the engine must be one of {engines}, not 'gpu'$"):
        session.read_register("gpu", "id")
