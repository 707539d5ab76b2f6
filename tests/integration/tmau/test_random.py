"""Rows and blocks around the ends of 4 KiB pages: which bus words are asked for, in which bursts."""

import shutil
from dataclasses import replace

import numpy as np
import pytest

from support.selection import cases
from tilewright import golden
from tilewright.golden import Memory, TensorMap, limits
from tilewright.golden.memory import mix_pattern
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.results import record
from tilewright.sim.session import Session
from tilewright.spec import DESCRIPTOR
from tilewright.tools.cli.main import main
from tilewright.verify.compare.batch_run import RandomRun, expected_words, requested_words
from tilewright.verify.coverage.loads import features, load_coverage
from tilewright.verify.random.batches import random_batches

PAGE = 4096
BYTES = 8 * PAGE

#: Rank, box in bytes and rows, pitch of the rows in bytes, and first coordinates.
SHAPES = {
    "chunk": ((16,), (), (0,)),
    "row": ((256,), (), (0,)),
    "row that begins before the tensor": ((256,), (), (-32,)),
    "row that ends after the tensor": ((256,), (), (40,)),
    "adjoining chunks": ((16, 32), (16,), (0, 0)),
    "adjoining rows": ((256, 10), (256,), (0, 0)),
    "rows that share words": ((48, 20), (48,), (0, 0)),
    "rows with gaps": ((48, 20), (112,), (0, 3)),
    "a row in every page": ((64, 4), (PAGE,), (0, 0)),
    "rows across every edge": ((128, 3), (PAGE,), (0, 0)),
    "adjoining planes": ((32, 4, 16), (32, 128), (0, 0, 0)),
}


@pytest.fixture(
    scope="module", params=["unit", *(pytest.param(name, marks=pytest.mark.long) for name in ("default", "ecp5"))]
)
def session(request):
    with Session(request.param, ["tmau"], latency=10) as session:
        session.global_memory.write(0, mix_pattern(BYTES, 1))
        yield session


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
@pytest.mark.parametrize("offset", [-128, -64, -48, -32, -16, 0, 16])
def test_bursts_at_a_page_edge(session, shape, offset):
    box, stride, coords = shape
    params, memory = session.params.tmau, Memory(mix_pattern(BYTES, 1))
    tmap = TensorMap(element="u8", address=PAGE + offset, size=box, stride=stride, box=box)
    before = np.full(params.smem.size_bytes, 0xA5, np.uint8)
    session.reset()
    session.shared_memory.write(0, before)
    run = session.load(tmap, coords, trace=True)
    trace = run.trace

    assert run.violations == ()
    assert (run.shared == golden.load(tmap, coords, memory, before.copy())).all()
    last = trace.request_address + trace.request_beats * params.bus_bytes - 1
    assert (trace.request_address // PAGE == last // PAGE).all()

    # Every needed word crosses the bus once, in order, and no other does.
    asked = requested_words(trace, params.bus_bytes)
    needed = limits(tmap, coords, params.bus_bytes).words
    assert asked.tolist() == expected_words(tmap, coords, params.bus_bytes).tolist()
    assert len(set(asked.tolist())) == len(asked) == run.data_beats == needed
    inside = (asked + params.bus_bytes > tmap.address) & (asked < tmap.address + tensor_bytes(tmap))
    assert inside.all()

    # The descriptor is read as it lies, once.
    first = session.descriptor(tmap)
    fetched = requested_words(trace, params.bus_bytes, number=1)
    assert fetched.tolist() == list(range(first, first + DESCRIPTOR.bytes, params.bus_bytes))


def tensor_bytes(tmap):
    """From the first byte of the tensor to the end of its last."""
    return tmap.size[0] + sum((size - 1) * step for size, step in zip(tmap.size[1:], tmap.stride, strict=True))


SEED = 10

#: Different descriptors of each run.
PLAN = {
    ("unit", "verilator"): 1300,
    ("ecp5", "verilator"): 700,
    ("default", "verilator"): 1100,
    ("full", "verilator"): 120,
    ("unit", "icarus"): 10,
}


def compare(preset, simulator):
    descriptors = PLAN[preset, simulator]
    print(f"{preset} on {simulator}: seed {SEED}, {descriptors} descriptors")
    with Session(preset, ["tmau"], simulator=simulator) as session:
        run = RandomRun(session)
        for batch in random_batches(SEED, session.params.tmau, descriptors):
            if run.run(batch):
                record(f"random-{preset}-{simulator}", cases=descriptors, mismatches=1, seed=SEED)
                pytest.fail(run.report(batch), pytrace=False)
    record(f"random-{preset}-{simulator}", cases=descriptors, mismatches=0, seed=SEED, commands=run.loads)
    record(f"preset-{preset}-{simulator}", preset=preset, simulated=True)
    # Commands met their descriptors in all ways: some found them, some were the first, some found them evicted.
    assert run.hits
    assert run.misses > session.params.tmau.cache_entries


# Nothing else needs the models of the others.
@cases("preset", ["unit"], ["ecp5", "default", "full"])
def test_random_commands_on_verilator(preset):
    compare(preset, "verilator")


@pytest.mark.long
@pytest.mark.skipif(not shutil.which("iverilog"), reason="Icarus Verilog is not installed")
@pytest.mark.parametrize("preset", [preset for preset, simulator in PLAN if simulator == "icarus"])
def test_random_commands_on_icarus(preset):
    compare(preset, "icarus")


#: Bins that hardly any box hits which fits the 4 KiB of preset unit's shared memory.
LARGE = {
    *(
        f"{place}page edges crosses more"
        for place in ("", *(f"base in page {at} × " for at in (0, 16, "middle", 4080)))
    ),
    "base in page 16 × page edges ends on one",
    *(f"swizzle none × row bytes 256 × line in 1 KiB {line}" for line in (4, 6, 7)),
    *(f"element bytes {size} × box of dimension 4 {count}" for size, count in ((2, 256), (4, 16), (8, 256))),
}


@cases("presets, empty", [(["unit"], LARGE)], [(["unit", "default"], set())])
def test_coverage(presets, empty):
    """The batches that run hit every bin; a bin that cannot be hit is excluded there."""
    coverage = load_coverage()
    for preset in presets:
        params = TMAU_PRESETS[preset]
        for batch in random_batches(SEED, params, PLAN[preset, "verilator"]):
            for load in batch.loads:
                if load.is_legal(params.smem.size_bytes):
                    tmap, coords = batch.moved(load.tmap), load.coords[: load.tmap.rank]
                    signal = load.barrier is not None
                    coverage.sample(features(tmap, coords, load.smem, signal, params.addr_width))
    print(coverage.table())
    record("coverage-random", bins=coverage.bins, empty=coverage.empty)
    assert set(coverage.empty) == empty


def test_a_wrong_byte_is_found_and_becomes_a_case(tmp_path):
    """The comparison can fail, and what it prints can be read and kept."""
    with Session("unit", ["tmau"]) as session:
        run = RandomRun(session)
        batch = replace(next(random_batches(SEED, session.params.tmau, 1)), base=0)
        smem_bytes = session.params.smem.size_bytes
        culprit = next(
            load
            for load in reversed(batch.loads)
            if load.is_legal(smem_bytes)
            and len(expected_words(load.tmap, load.coords, session.params.tmau.bus_bytes)) > 2
        )
        word = int(expected_words(culprit.tmap, culprit.coords, session.params.tmau.bus_bytes)[1])
        session.global_memory.write(word, session.global_memory.read(word, session.params.tmau.bus_bytes) ^ 0x5A)
        assert any("shared memory differs" in difference for difference in run.run(batch))
        assert culprit in run.reduce(batch).loads
        path = tmp_path / "case.json"
        path.write_text(run.report(batch).splitlines()[-1])
        assert main(["replay", str(path), "--on", "golden"]) == 0
