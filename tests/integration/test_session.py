"""Sessions: what the RTL does behind drivers, memory model and backdoors equals the golden model."""

import re
import shutil

import numpy as np
import pytest

from support.sessions import session_fixture
from tilewright import golden
from tilewright.golden import TensorMap
from tilewright.sim.hdl.build import SIMULATORS
from tilewright.sim.session import Session
from tilewright.spec import BarrierOp, Error, Opcode
from tilewright.spec.tmau_registers import TMAU_ID_VALUE

PHOTO = np.random.default_rng(1).integers(0, 256, (20, 24, 16), np.uint8)  # seed 1
BARRIER = 0xF00


shared_session = session_fixture("unit", engines=["tmau"], latency=20, memory_bytes=1 << 16)


@pytest.fixture
def session(shared_session):
    shared_session.clear()
    shared_session.configure(latency=20, stall=0.0, issue_stall=0.0, answer_stall=0.0, seed=1, errors=(0, 0, 0))
    shared_session.shared_memory.write(0, np.full(len(shared_session.shared_memory), 205, np.uint8))
    return shared_session


def _expected(session, loads):
    """Shared memory after ``loads`` of (map, coords, address)."""
    smem = np.full(len(session.shared_memory), 205, np.uint8)
    for tmap, coords, address in loads:
        golden.load(tmap, coords, smem=smem, address=address)
    return smem


def _watched(run):
    """The run, which kept every rule of the bus."""
    assert run.finished
    assert run.violations == ()
    assert run.late == ()
    return run


@pytest.mark.parametrize("stall", [0.0, 0.5])
def test_loads_equal_golden(session, stall):
    session.configure(stall=stall, issue_stall=stall, seed=3)
    tmap = TensorMap.tiled(PHOTO, box=(16, 4, 4), swizzle="none")
    loads = [(tmap, (0, x, y), 1024 * index) for index, (x, y) in enumerate([(0, 0), (-2, 17), (30, 0)])]
    run = _watched(session.run([session.command(*load) for load in loads], shared=True))
    assert (run.shared == _expected(session, loads)).all()
    assert [stamp.error for stamp in run.commands] == [Error.NONE] * 3
    assert [stamp.tag for stamp in run.commands] == [0, 1, 2]
    words = [
        golden.limits(tmap, coords, session.params.tmau.bus_bytes, address).words for tmap, coords, address in loads
    ]
    assert run.data_beats == sum(words)
    assert run.descriptor_beats == 128 // session.params.tmau.bus_bytes


def test_trace_and_latency(session):
    tmap = TensorMap.tiled(PHOTO, box=(16, 1, 1))
    session.load(tmap, (0, 0, 0))
    run = _watched(session.load(tmap, (0, 1, 0), trace=True))
    assert run.trace.request_id.tolist() == [0]
    assert run.trace.request_address.tolist() == [session.bind(tmap).address + 16]
    assert run.trace.beat_cycle[0] - run.trace.request_cycle[0] == 20
    assert run.first_request() == run.trace.request_cycle[0] - run.commands[0].accepted
    assert run.span <= run.cycles


def test_global_memory_is_read_back(session):
    session.global_memory.write(13, PHOTO[0])
    assert (session.global_memory.read(13, PHOTO[0].size) == PHOTO[0].reshape(-1)).all()
    with pytest.raises(IndexError, match=r"bytes of global memory$"):
        session.global_memory.read(len(session.global_memory) - 1, 2)


def test_shared_memory_at_any_address(session):
    values = np.arange(300, dtype=np.uint8)
    session.shared_memory.write(77, values)
    assert (session.shared_memory.read(77, 300) == values).all()
    assert (session.shared_memory.read(0, 77) == 205).all()
    assert session.shared_memory.read(377, 1)[0] == 205


def test_consumer_reads(session):
    session.configure(answer_stall=0.4)
    image = np.arange(2048, dtype=np.uint16).view(np.uint8)
    session.shared_memory.write(0, image)
    lanes = [[16 * (7 * read + lane) for lane in range(8)] for read in range(10)] + [[256, None, 512]]
    run = _watched(session.run(reads=lanes))
    for addresses, answer in zip(lanes, run.reads, strict=True):
        for lane, address in enumerate(addresses):
            if address is not None:
                assert (answer[lane] == image[address : address + 16]).all()


def test_barrier_and_order_of_ports(session):
    tmap = TensorMap.tiled(PHOTO, box=(16, 4, 2))
    count = golden.tx_bytes(tmap)
    session.run(barriers=[(BarrierOp.INIT, BARRIER, 1), (BarrierOp.EXPECT_TX, BARRIER, count)])
    run = _watched(
        session.run(
            [session.command(tmap, (0, 0, 0), barrier=BARRIER)],
            barriers=[(BarrierOp.ARRIVE, BARRIER, 1), (BarrierOp.TRY_WAIT, BARRIER, 0, True)],
            reads=[[0, 16]],
            after={"reads": ["barriers"]},
        )
    )
    assert run.barriers[1].done
    assert [address for _, address in run.flips] == [BARRIER]
    assert run.commands[0].done <= run.flips[0][0] < run.barriers[1].cycle < run.read_cycles[0]
    assert (run.reads[0, :2].reshape(-1) == PHOTO[0, :2].reshape(-1)).all()


def test_refused_commands_leave_everything(session):
    tmap = TensorMap.tiled(PHOTO, box=(16, 4, 4))
    bad = [session.command(tmap, (0, 0, 0), address=64), {"opcode": 15, "tag": 77}]
    run = _watched(session.run([*bad, {"opcode": Opcode.INVALIDATE_ALL}], shared=True, drain=50))
    assert [(stamp.tag, stamp.error) for stamp in run.commands] == [
        (0, Error.SMEM_ALIGNMENT),
        (77, Error.OPCODE),
        (2, Error.NONE),
    ]
    assert run.error == Error.SMEM_ALIGNMENT
    assert run.data_beats == 0
    assert (run.shared == 205).all()
    assert session.read_register("error") & 0xFF == Error.SMEM_ALIGNMENT


def test_error_responses(session):
    tmap = TensorMap.tiled(PHOTO, box=(16, 4, 4))
    address = session.bind(tmap).address
    session.configure(errors=(address + 24 * 16, address + 24 * 16, 2))
    run = _watched(session.load(tmap, (0, 0, 0)))
    assert run.error == Error.READ
    assert _watched(session.load(tmap, (0, 0, 2))).error is None


def test_reset_in_mid_transfer(session):
    tmap = TensorMap.tiled(PHOTO, box=(16, 4, 4))
    for limit in range(1, 44, 6):
        cut = session.run([session.command(tmap, (0, 0, 0))], limit=limit)
        assert not cut.finished
        assert cut.commands[0].done is None
        session.shared_memory.write(0, np.full(len(session.shared_memory), 205, np.uint8))
        run = _watched(session.load(tmap, (0, 3, 2)))
        assert (run.shared == _expected(session, [(tmap, (0, 3, 2), 0)])).all()


def test_far_addresses(session):
    session.clear(base=0xC000_0000)
    tmap = TensorMap.tiled(PHOTO, box=(16, 4, 4))
    assert session.bind(tmap).address >= 0xC000_0000
    run = _watched(session.load(tmap, (0, 5, 6)))
    assert (run.shared == _expected(session, [(tmap, (0, 5, 6), 0)])).all()


def test_registers(session):
    session.write_register("irq_enable", 2)
    assert session.read_register("irq_enable") == 2
    session.load(TensorMap.tiled(PHOTO, box=(16, 4, 4)), (0, 0, 0))
    registers = session.registers()
    assert registers["id"] == TMAU_ID_VALUE
    assert registers["commands"] == 1
    assert registers["beats"] == 16


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda s: s.configure(latency=1), "latency must be 2 to 1023, not 1"),
        (lambda s: s.configure(stall=1.0), "the probability of a pause must be at least 0 and less than 1, not 1.0"),
        (lambda s: s.configure(errors_on="all"), "errors_on must be one of reads, writes, both, not 'all'"),
        (lambda s: s.configure(stall={"x": 0.5}), "the channels are ar, r, aw, w, b, and 'x' is none of them"),
        (lambda s: s.run([{"opcode": 1}] * 4097), "a run must have at most 4096 commands, not 4097"),
        (lambda s: s.read_register("nothing"), "there is no register 'nothing'"),
        (lambda s: s.descriptor(b"12"), "a descriptor must be 128 bytes, not 2"),
        (lambda s: s.clear(base=8), "base must be a multiple of the 16-byte bus word, not 8"),
        (lambda s: s.place(bytes(1 << 17)), "global memory has no space for 131072 bytes more"),
        (lambda s: Session("tiny", ["tmau"]), "the preset must be one of unit, ecp5, default, lean, full, not 'tiny'"),
    ],
)
def test_mistakes(session, call, sentence):
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        call(session)


@pytest.mark.skipif(shutil.which("iverilog") is None, reason="Icarus Verilog is not installed")
def test_both_simulators_agree_on_bytes_and_cycles():
    tmap = TensorMap.tiled(PHOTO, box=(16, 3, 3), swizzle="32B")
    runs = []
    for simulator in SIMULATORS:
        with Session(
            "unit", ["tmau"], simulator=simulator, latency=20, stall=0.3, seed=5, memory_bytes=1 << 16
        ) as session:
            runs.append(_watched(session.load(tmap, (0, -1, 4), trace=True)))
            end = golden.load(tmap, (0, -1, 4))
            assert (runs[-1].shared[: len(end)] == end).all()
    assert runs[0].commands == runs[1].commands
    assert (runs[0].trace.beat_cycle == runs[1].trace.beat_cycle).all()
