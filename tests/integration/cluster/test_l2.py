"""A cluster of two access units behind a second-level cache: random commands and garbage against golden, and the cache
itself: flush, prefetch, errors, resets.

Specification: docs/cluster.md, "L2".
"""

import random

import numpy as np
import pytest

from support.clusters import compare_garbage, compare_random, copy
from tilewright.hw.bus.axi4 import Response
from tilewright.hw.cluster.l2.params import L2Params
from tilewright.hw.cluster.params import ClusterParams
from tilewright.hw.core.params import CoreParams
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.results import record
from tilewright.sim.session.cluster import ClusterSession
from tilewright.spec import Element, Error, Opcode, Reduction, Space

# The model takes minutes to build; the cache alone is in tests/unit/cluster/l2.
pytestmark = pytest.mark.long

SEED = 3
UNIT = TMAU_PRESETS["unit"]


@pytest.fixture(scope="module")
def pair():
    """Of a few sets, so that lines leave."""
    with ClusterSession(params=ClusterParams(2, CoreParams(UNIT), L2Params(4096, 2, 32)), patience=300_000) as session:
        yield session


@pytest.fixture
def cluster(pair):
    """The pair after a reset, with empty shared memories, and a pattern in the first 64 KiB of global memory."""
    pair.clear()
    pair.configure(latency=50, stall=0.0, issue_stall=0.0, seed=1, errors=(0, 0, 0))
    pair.place(np.random.default_rng(SEED).integers(0, 256, 1 << 16, np.uint8))
    for memory in pair.shared_memories:
        memory.write(0, np.zeros(UNIT.smem.size_bytes, np.uint8))
    return pair


def back(source, destination, size=256, **fields):
    """A copy from shared to global memory."""
    return copy(source, destination, size, source_space=Space.SHARED, destination_space=Space.GLOBAL, **fields)


def test_random_commands(pair):
    record("cluster-l2", cases=compare_random(pair, SEED, 60).commands, mismatches=0, seed=SEED)


def test_garbage(pair):
    """Stores, reductions and prefetches of both cores too; global memory is compared behind a flush."""
    rng, counted = random.Random(SEED), {"evictions": 0, "prefetches": 0}

    def count():
        registers = pair.cache_registers()
        counted.update({name: number + registers[name] for name, number in counted.items()})

    comparison = compare_garbage(
        pair, UNIT, SEED, 600, lambda: {"cores": rng.choice([rng.randrange(4), rng.getrandbits(16)])}, count
    )
    assert min(counted.values()) > 100, counted
    record("isolation-cluster-l2", cases=comparison.commands, mismatches=0, seed=SEED)


def test_reductions_of_both_cores_on_the_same_bytes(cluster):
    """None is lost in the cache, whichever core it comes from, while lines leave for others."""
    for memory in cluster.shared_memories:
        memory.write(0, np.ones(256, "<u4").view(np.uint8))
    adds = [back(0, 0x4000 + 1024 * (n % 4), 1024, reduction=Reduction.ADD, element=Element.U32) for n in range(24)]
    others = [copy(0x100 * n, 2048, 256) for n in range(24)]
    before = cluster.run(memory=(0x4000, 4096)).memory.view("<u4")
    mixed = [command for pair in zip(adds, others, strict=True) for command in pair]
    run = cluster.run([mixed, mixed])
    assert all(stamp.error == Error.NONE for core in run.cores for stamp in core.commands)
    cluster.flush()
    assert (cluster.run(memory=(0x4000, 4096)).memory.view("<u4") == before + 12).all()


def test_memory_has_what_was_written_after_a_flush(cluster):
    before = cluster.run(memory=(0x2000, 256)).memory
    run = cluster.run([[copy(0x100, 0, 256), back(0, 0x2000, wait=True)]], memory=(0, 0x2100))
    assert (run.memory[0x2000:] == before).all()
    cluster.flush()
    after = cluster.run(memory=(0, 0x2100)).memory
    assert (after[0x2000:] == after[0x100:0x200]).all()


def test_a_prefetch_saves_the_latency_of_memory(cluster):
    def cycles(source):
        (core, _) = cluster.run([[copy(source, 0, 256)]]).cores
        return core.commands[0].done - core.commands[0].accepted

    cluster.run([[{"opcode": Opcode.PREFETCH_BLOCK, "source": 0x800, "size": 256}]], drain=200)
    assert cycles(0x800) <= cycles(0x1000) - 50
    assert cluster.cache_registers()["prefetches"] == 2


def test_an_error_is_not_kept(cluster):
    cluster.configure(errors=(0x100, 0x1FF, Response.SLVERR.value))
    first = cluster.run([[copy(0x100, 0, 256)], [copy(0x400, 0, 256)]])
    assert [core.commands[0].error for core in first.cores] == [Error.READ, Error.NONE]
    cluster.configure(errors=(0, 0, 0))
    again = cluster.run([[copy(0x100, 0, 256)], [copy(0x100, 512, 256)]], shared=True, memory=(0x100, 256))
    assert [core.commands[0].error for core in again.cores] == [Error.NONE, Error.NONE]
    assert (again.cores[1].shared[512:768] == again.memory).all()


@pytest.mark.parametrize("cycles", [90, 140, 200])
def test_reset_in_the_middle(cluster, cycles):
    """What is under way is gone, and what memory has is read anew."""
    busy = [copy(256 * n, 512, 256) for n in range(12)] + [back(512, 0x3000 + 256 * n) for n in range(12)]
    assert not cluster.run([busy, busy], limit=cycles).finished
    cluster.reset()
    run = cluster.run([[copy(0x100, 0, 256)]], shared=True, memory=(0x100, 256))
    assert run.cores[0].commands[0].error == Error.NONE
    assert (run.cores[0].shared[:256] == run.memory).all()
