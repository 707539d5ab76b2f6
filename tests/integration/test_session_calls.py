"""Calls on sessions of the unit preset: what the golden model gives and refuses, and every mistake is one sentence."""

import gc
import re
import warnings
from contextlib import suppress

import numpy as np
import pytest
from amaranth.hdl import Fragment, UnusedElaboratable

from support.sessions import session_fixture
from tilewright import golden
from tilewright.golden import CommandError, ErrorRecord, TensorMap
from tilewright.hw.smem.top import SharedMemory
from tilewright.sim.hdl.simulation import SimulationError
from tilewright.sim.report.timeline import timeline
from tilewright.sim.session import Session
from tilewright.sim.session import base as session_base
from tilewright.spec import Error

PHOTO = np.random.default_rng(2).integers(0, 256, (20, 24, 16), np.uint8)  # seed 2
TILE = TensorMap.tiled(PHOTO, box=(16, 4, 4))
PIXELS = TensorMap.im2col(PHOTO[np.newaxis], pixels=16, lower=(-1, -1), upper=(-1, -1))


shared_session = session_fixture("unit", engines=["tmau"], latency=20, memory_bytes=1 << 16)


@pytest.fixture
def session(shared_session):
    """Used as it is; what a test leaves must not matter to the next."""
    shared_session.clear()
    shared_session.shared_memory.write(0, np.full(len(shared_session.shared_memory), 205, np.uint8))
    return shared_session


def shared_of(session):
    return np.full(len(session.shared_memory), 205, np.uint8)


@pytest.mark.parametrize(
    ("tmap", "coords", "options"),
    [
        (TILE, (0, -1, 18), {"address": 256}),
        (PIXELS, (0, -1, -1, 0), {"address": 128, "offsets": (1, 2)}),
        (PIXELS, (0, 3, 2, 0), {}),
    ],
)
def test_a_load_is_the_golden_one(session, tmap, coords, options):
    run = session.load(tmap, coords, **options)
    assert (run.shared == golden.load(tmap, coords, smem=shared_of(session), **options)).all()
    assert run.error is None


@pytest.mark.parametrize("options", [{}, {"reduction": "add"}, {"reduction": "max"}, {"fill": True}])
def test_a_store_is_the_golden_one(session, options):
    numbers = np.arange(8 * 24, dtype=np.uint32).reshape(8, 24)
    tmap = TensorMap.tiled(numbers, box=(8, 4), fill={"constant": 0x01020304})
    smem = np.arange(256, dtype=np.uint8)
    session.shared_memory.write(128, smem[128:])
    run = session.store(tmap, (4, 6), 128, **options)
    same = TensorMap.tiled(numbers.copy(), box=(8, 4), fill={"constant": 0x01020304})
    expected = golden.store(same, (4, 6), smem, address=128, **options)
    assert (run.memory == expected.data).all()
    assert (run.memory != numbers.view(np.uint8).reshape(-1)).any()


@pytest.mark.parametrize("spaces", [("global", "shared"), ("shared", "global"), ("shared", "shared")])
def test_a_copy_of_a_block_is_the_golden_one(session, spaces):
    address = session.place(PHOTO[:2])
    gmem, smem = golden.Memory(PHOTO[:2].tobytes(), base=address), shared_of(session)
    smem[:256] = np.arange(256, dtype=np.uint8)
    session.shared_memory.write(0, smem)
    places = {"global": (address + 32, address + 32), "shared": (0, 512)}
    source, destination = places[spaces[0]][0], places[spaces[1]][1]
    options = {"source_space": spaces[0], "destination_space": spaces[1], "reduction": "add", "element": "u32"}
    run = session.copy_block(source, destination, 96, **options)
    golden.copy_block(source, destination, 96, gmem, smem, **options)
    if spaces[1] == "shared":
        assert (run.shared == smem).all()
    else:
        assert (run.memory == gmem.read(destination, 96)).all()


def test_prefetches_move_nothing(session):
    for run in (session.prefetch(TILE, (0, 0, 0), shared=True), session.prefetch_block(0, 64, shared=True)):
        assert run.error is None and run.data_beats == 0
        assert (run.shared == 205).all()


@pytest.mark.parametrize(
    "call",
    [
        lambda mover: mover.load(TILE, 3),
        lambda mover: mover.load(TILE, (3.9, 0.9, 0)),
        lambda mover: mover.load(TILE, (3,)),
        lambda mover: mover.load(TILE, (0, 0, 1 << 31)),
        lambda mover: mover.load(TILE, (0, 0, 0), address=64),
        lambda mover: mover.load(TILE, (0, 0, 0), address=-128),
        lambda mover: mover.load(TILE, (0, 0, 0), offsets=(1, 1)),
        lambda mover: mover.load(PIXELS, (0, 0, 0, 0), offsets=(0, 256)),
        lambda mover: mover.load(PIXELS, (0, 23, 0, 0)),
        lambda mover: mover.load("map", (0, 0, 0)),
        lambda mover: mover.prefetch(TILE, (0, 0, 0), (1,)),
        lambda mover: mover.prefetch_block(8, 16),
    ],
)
def test_a_session_refuses_what_the_golden_model_refuses(session, call):
    with pytest.raises((TypeError, ValueError)) as wanted:
        call(golden)
    with pytest.raises(type(wanted.value), match=f"^{re.escape(str(wanted.value))}$") as caught:
        call(session)
    assert vars(caught.value) == vars(wanted.value)


@pytest.mark.parametrize(
    ("tmap", "coords", "options"),
    [
        (TILE, (0, 0, 0), {"offsets": (1, 1)}),
        (PIXELS, (0, 0, 0, 0), {"offsets": (0, 0, 1)}),
        (TILE, (0, 0, 0), {"address": 64}),
        (TILE, (0, 0, 0), {"address": 4096}),
        (PIXELS, (0, 23, 0, 0), {}),
    ],
)
def test_the_golden_error_is_the_record_of_the_hardware(session, tmap, coords, options):
    """Also error 28 of a tile map with offsets, which the golden model once ignored."""
    with pytest.raises(CommandError) as caught:
        golden.load(tmap, coords, smem=shared_of(session), **options)
    session.write_register("control", 4)  # clear_error
    run = session.run([session.command(tmap, coords, **options)], shared=True, drain=50)
    words = [session.read_register(name) for name in ("error", "error_address_lo", "error_address_hi")]
    record = ErrorRecord.of_registers(*words)
    assert (*caught.value.refusal[:2], 0) == (record.code, record.field, record.address)
    assert run.error == caught.value.code
    assert (run.shared == 205).all()
    if tmap is TILE and "offsets" in options:
        assert record.code == Error.OFFSETS


@pytest.mark.parametrize(
    ("kind", "call", "sentence"),
    [
        (ValueError, lambda s: s.run(limit=-1), "limit must be 1 to 4294967295, not -1"),
        (ValueError, lambda s: s.run(limit=1 << 40), "limit must be 1 to 4294967295, not 1099511627776"),
        (ValueError, lambda s: s.run(drain=-1), "drain must be 0 to 4294967295, not -1"),
        (ValueError, lambda s: s.run(after={"reads": ["barrier"]}),
         "after must name ports among commands, reads, barriers, registers, not 'barrier'"),
        (TypeError, lambda s: s.run(5), "commands must be a list, not 5"),
        (TypeError, lambda s: s.run([3.5]), "a command that is no dictionary must be an integer, not 3.5"),
        (ValueError, lambda s: s.run([{"opcode": "lod"}]),
         "opcode must be one of load, invalidate, invalidate_all, store, reduce, prefetch, copy_block, prefetch_block, "
         "commit, wait, wait_all, replace, lanes, not 'lod'; did you mean 'load'?"),
        (TypeError, lambda s: s.run(barriers=[3]), "barriers must be tuples of 2 to 4 entries, not 3"),
        (ValueError, lambda s: s.run(barriers=[("arive", 0)]),
         "the operation must be one of init, arrive, expect_tx, complete_tx, try_wait, not 'arive'; did you mean "
         "'arrive'?"),
        (ValueError, lambda s: s.run(barriers=[("arrive", 1 << 40)]),
         "the barrier must lie in the 4096 bytes of shared memory, not at 0x10000000000"),
        (ValueError, lambda s: s.run(barriers=[("arrive", 4096)]),
         "the barrier must lie in the 4096 bytes of shared memory, not at 0x1000"),
        (ValueError, lambda s: s.run(reads=[[0, 4096]]),
         "an address of reads must lie in the 4096 bytes of shared memory, not at 0x1000"),
        (ValueError, lambda s: s.run(registers=[("idd",)]), "there is no register 'idd'"),
        (ValueError, lambda s: s.run(registers=[("id", -1)]), "the word of a register must be 0 to 4294967295, not -1"),
        (ValueError, lambda s: s.run(jobs=[1]), "jobs must be left out: the core has no convolution engine"),
        (ValueError, lambda s: s.run(program=[1]),
         "program, segments and pages must be left out: the core has no processing engine"),
        (ValueError, lambda s: s.run_program(0, 1), "the core has no command processor"),
        (ValueError, lambda s: s.registers("conv"), "the engine must be one of tmau, not 'conv'"),
        (TypeError, lambda s: s.run(reads=[3]), "an entry of reads must be a list, not 3"),
        (ValueError, lambda s: s.run(reads=[[8]]), "a read has up to 8 addresses that are multiples of 16, not [8]"),
        (IndexError, lambda s: s.run(shared=(0, 8192)), "8192 bytes at 0x0 leave the 4096 bytes of shared memory"),
        (TypeError, lambda s: s.run(shared=5), "shared must be an address and a number of bytes, not 5"),
        (TypeError, lambda s: s.configure(latency="x"), "latency must be an integer, not 'x'"),
        (TypeError, lambda s: s.configure(errors=3), "errors must be a list or tuple, not 3"),
        (TypeError, lambda s: s.configure(seed=1.5), "seed must be an integer, not 1.5"),
        (ValueError, lambda s: s.clear(base=-16), "base must be 0 to 4294377472, not -16"),
        (TypeError, lambda s: s.place([1]), "data must be bytes or a numpy array of numbers, not [1]"),
        (TypeError, lambda s: s.descriptor("x"), "a map that is no TensorMap must be an integer, not 'x'"),
        (ValueError, lambda s: s.global_memory.read(0, -10), "count must be 0 or more, not -10"),
        (TypeError, lambda s: timeline(3), "run must be a Run of a Session, not 3"),
        (ValueError, lambda s: s.load(TILE, (0, 0, 0)).first_request(),
         "the run must have a trace: make it with trace=True"),
        (ValueError, lambda s: timeline(s.run()), "the run must have a trace: make it with trace=True"),
        (ValueError, lambda s: timeline(s.run(trace=True)),
         "index must be that of one of the 0 commands, accepted, not 0"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_sentence_and_the_simulator_lives(session, kind, call, sentence):
    with pytest.raises(kind) as caught:
        call(session)
    assert str(caught.value) == sentence
    run = session.load(TILE, (0, 0, 0))
    assert (run.shared == golden.load(TILE, (0, 0, 0), smem=shared_of(session))).all()


def test_a_refused_run_leaves_the_hardware_as_it_was(session):
    """No reset comes of it: registers keep what they hold."""
    session.write_register("irq_enable", 3)
    with pytest.raises(ValueError, match=r"^limit must be "):
        session.run(limit=-1)
    assert session.read_register("irq_enable") == 3
    session.write_register("irq_enable", 0)


@pytest.mark.parametrize(
    ("kind", "options", "sentence"),
    [
        (ValueError, {"memory_bytes": -1}, "memory_bytes must be 1 to 1073741824, not -1"),
        (ValueError, {"memory_bytes": 1 << 40}, "memory_bytes must be 1 to 1073741824, not 1099511627776"),
        (TypeError, {"patience": "x"}, "patience must be an integer, not 'x'"),
        (TypeError, {"latency": "x"}, "latency must be an integer, not 'x'"),
        (TypeError, {"seed": "x"}, "seed must be an integer, not 'x'"),
        (ValueError, {"simulator": "nothing"}, "the simulator must be one of verilator, icarus, not 'nothing'"),
        (TypeError, {"waves": 3}, "waves must be a path, not 3"),
        (TypeError, {"params": 3}, "params must be CoreParams, not 3"),
    ],
)  # fmt: skip
def test_a_wrong_session_is_refused_before_anything_is_built(monkeypatch, kind, options, sentence):
    monkeypatch.setattr(session_base, "cached_design", lambda *arguments: pytest.fail("a design was made"))
    with pytest.raises(kind) as caught:
        Session("unit", ["tmau"], **options)
    assert str(caught.value) == sentence


@pytest.mark.parametrize("engines", [["tmau"], ["tmau", "pe"]])
def test_a_session_that_fails_says_nothing_of_unused_parts(monkeypatch, engines):
    def interrupt(shared_memory, platform):
        raise KeyboardInterrupt

    # What earlier tests have left speaks now, and not below.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gc.collect()
    # Amaranth warns of parts that are made and not elaborated as soon as one is.
    monkeypatch.setattr(session_base, "cached_design", lambda make, *key: make())
    monkeypatch.setattr(session_base, "make_design", lambda harness, arrays: Fragment.get(harness, None))
    monkeypatch.setattr(SharedMemory, "elaborate", interrupt)
    monkeypatch.setattr(UnusedElaboratable, "_MustUse__silence", True)
    monkeypatch.setattr(session_base.MustUse, "_MustUse__silence", False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with suppress(KeyboardInterrupt):
            Session("unit", engines)
        gc.collect()
    assert not UnusedElaboratable._MustUse__silence
    assert [str(warning.message) for warning in caught] == []


def test_a_closed_session_says_so():
    with Session("unit", ["tmau"], memory_bytes=1 << 16) as session:
        session.load(TILE, (0, 0, 0))
    for call in (
        lambda: session.load(TILE, (0, 0, 0)),
        lambda: session.place(b"x" * 64),
        lambda: session.global_memory.read(0, 1),
        session.registers,
    ):
        with pytest.raises(SimulationError, match=r"^the simulation has been closed$"):
            call()
    session.close()


def test_an_interrupted_run_ends_the_session(monkeypatch):
    """The answer that was not waited for is not taken for that of another run."""

    class Stream:
        def __init__(self, stream):
            self.close = stream.close

        def __iter__(self):
            raise KeyboardInterrupt

    with Session("unit", ["tmau"], memory_bytes=1 << 16) as session:
        process = session.simulation._process
        monkeypatch.setattr(process, "stdout", Stream(process.stdout))
        with pytest.raises(KeyboardInterrupt):
            session.load(TILE, (0, 0, 0))
        with pytest.raises(SimulationError, match=r"^the simulation has been closed$"):
            session.load(TILE, (0, 1, 0))


def test_what_a_notebook_shows(session):
    assert re.fullmatch(r"Session of verilator: 4096 bytes of shared memory, \d+ cycles so far", repr(session))
    run = session.load(TILE, (0, 0, 0), trace=True)
    assert repr(run) == (f"Run: finished after {run.cycles} cycles; 1 commands in {run.span} cycles; "
                         "16 bus words read, 0 written")  # fmt: skip
    assert repr(session.shared_memory) == "4096 bytes of shared memory from 0x0 on"
    transfer = timeline(run)
    assert len(transfer.events["data words (R)"]) == 16
    assert transfer.events["command complete"] == [run.span]
    assert transfer._repr_svg_().startswith("<svg ")
    stored = timeline(session.store(TILE, (0, 0, 0), trace=True))
    assert len(stored.events["written words (W)"]) == 16
    assert "data words (R)" not in stored.events
