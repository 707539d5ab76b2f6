"""A cluster of two access units on RTL: random commands and garbage against golden, errors, resets, what is counted.

Specification: docs/cluster.md.
"""

import random
from pathlib import Path

import numpy as np
import pytest

from support.clusters import compare_garbage, compare_random, copy
from support.selection import cases
from tilewright.golden import TensorMap
from tilewright.golden.smem import Barrier
from tilewright.hw.bus.axi4 import Response
from tilewright.hw.cluster.params import ClusterParams
from tilewright.hw.core.params import CoreParams
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.results import record
from tilewright.sim.replay.cases import cases_of
from tilewright.sim.replay.golden import run_case
from tilewright.sim.replay.outcome import differences
from tilewright.sim.replay.rtl import run_cluster_on_session
from tilewright.sim.session.cluster import ClusterSession
from tilewright.spec import BLOCK, COMMAND_FIELD, Error, Space
from tilewright.spec.cluster import ClusterError

SEED = 3
UNIT = TMAU_PRESETS["unit"]


def open_cluster(cores):
    return ClusterSession(params=ClusterParams(cores, CoreParams(UNIT)), patience=300_000)


@pytest.fixture
def cluster(pair):
    """The pair after a reset, with empty shared memories but for a barrier at 0x78 that waits for 64 bytes."""
    pair.clear()
    pair.configure(latency=20, stall=0.0, issue_stall=0.0, seed=1, errors=(0, 0, 0))
    shared = np.zeros(UNIT.smem.size_bytes, np.uint8)
    Barrier(expected=1, transactions=64).write(shared, 0x78)
    for memory in pair.shared_memories:
        memory.write(0, shared)
    return pair


def compare(session, batches):
    comparison = compare_random(session, SEED, batches)
    assert set(comparison.endings) == {Error.NONE, Error.WINDOW, ClusterError.CORES, ClusterError.REMOTE}
    record(f"cluster-{session.params.cores}", cases=comparison.commands, mismatches=0, seed=SEED)


def test_random_commands(pair):
    compare(pair, 40)


@pytest.mark.long
@pytest.mark.parametrize(("cores", "batches"), [(2, 400), (3, 100), (4, 200)])
def test_more_random_commands(cores, batches):
    with open_cluster(cores) as session:
        compare(session, batches)


@cases("count", [1000], [20_000])
def test_garbage(pair, count):
    """Nothing leaves the windows of any core, nothing hangs, and golden says the same of every command."""
    rng = random.Random(SEED)
    comparison = compare_garbage(pair, UNIT, SEED, count, lambda: _garbage_delivery(rng))
    assert comparison.commands >= count and len(comparison.endings) > 16
    assert comparison.endings[ClusterError.CORES] and comparison.endings[Error.NONE] > count // 20
    record("isolation-cluster", cases=comparison.commands, mismatches=0, seed=SEED)


def _garbage_delivery(rng):
    """Receivers, and the core that is read; half of them exist."""
    source = rng.choice([None, rng.randrange(2), rng.randrange(16)])
    return {"cores": rng.choice([rng.randrange(4), rng.getrandbits(16)]), "source_core": source}


def test_one_read_serves_all(cluster):
    """Both get the tile and count its bytes; global memory is read once."""
    image = np.arange(64 * 16, dtype=np.uint8).reshape(16, 64)
    load = cluster.command(TensorMap.tiled(image, box=(16, 4)), (16, 8), 1024, barrier=0x78, cores=[0, 1])
    before = [cluster.registers(core) for core in (0, 1)]
    run = cluster.run([[load]], shared=True, drain=64)
    after = [cluster.registers(core) for core in (0, 1)]
    assert [stamp.error for stamp in run.cores[0].commands] == [Error.NONE]
    for core in run.cores:
        assert (core.shared[1024:1088].reshape(4, 16) == image[8:12, 16:32]).all()
        assert Barrier.read(core.shared, 0x78).transactions == 0
    assert run.data_beats * UNIT.bus_bytes == 64
    counted = [{name: new[name] - old[name] for name in ("bytes", "bytes_received", "commands")}
               for old, new in zip(before, after, strict=True)]  # fmt: skip
    assert counted == [{"bytes": 64, "bytes_received": 64, "commands": 1},
                       {"bytes": 0, "bytes_received": 64, "commands": 0}]  # fmt: skip
    assert [registers["core"] for registers in after] == [0x200, 0x201]


def test_refusals_are_recorded_on_both_sides(cluster):
    cluster.run(registers=[[], [("isolation", 0xFFFF_FFFF & ~(1 << 16))]])
    run = cluster.run([[copy(0, 512, tag=77, cores=[0, 1], signal=1, barrier=0x78)]], shared=True, drain=64)
    assert run.cores[0].commands[0].error == ClusterError.REMOTE
    sender, receiver = (cluster.registers(core) for core in (0, 1))
    field = COMMAND_FIELD + BLOCK.index("destination")
    assert (sender["error"], sender["error_address_lo"]) == (ClusterError.REMOTE | 77 << 16, 0b10)
    assert (receiver["error"], receiver["error_count"]) == (Error.WINDOW | field << 8 | 77 << 16, 1)
    assert [Barrier.read(core.shared, 0x78).transactions for core in run.cores] == [0, 64]


def test_a_core_is_read_where_it_allows_it(cluster):
    """To both cores, and to global memory, at the rate of the bus; a window that does not hold all of it refuses."""
    lines = np.arange(1024, dtype=np.uint32).view(np.uint8)[:1024]
    cluster.shared_memories[1].write(1024, lines)
    before = cluster.registers(0)["bytes"]
    source = {"source_space": Space.SHARED, "source_core": 1}
    moves = [copy(1024, 2048, 1024, cores=[0, 1], **source),
             copy(1024, 0x2000, 1024, **source | {"destination_space": Space.GLOBAL})]  # fmt: skip
    run = cluster.run([moves], shared=True, memory=(0x2000, 1024))
    assert [stamp.error for stamp in run.cores[0].commands] == [Error.NONE] * 2
    assert all((core.shared[2048:3072] == lines).all() for core in run.cores)
    assert (run.memory == lines).all()
    assert cluster.registers(0)["bytes"] - before == 1024
    assert run.cycles < 2 * 1024 // UNIT.bus_bytes + 150
    window = [("shared_base", 1024), ("shared_limit", 2048 - 129), ("windows", 2)]
    cluster.run(registers=[[], window])
    run = cluster.run([[copy(1024, 0, 1024, tag=78, **source), copy(1024, 0, 896, **source)]], shared=True)
    assert [stamp.error for stamp in run.cores[0].commands] == [ClusterError.REMOTE, Error.NONE]
    sender, owner = (cluster.registers(core) for core in (0, 1))
    field = COMMAND_FIELD + BLOCK.index("source")
    assert (sender["error"], sender["error_address_lo"]) == (ClusterError.REMOTE | 78 << 16, 0b10)
    assert (owner["error"], owner["error_count"]) == (Error.WINDOW | field << 8 | 78 << 16, 1)
    assert (run.cores[0].shared[:896] == lines[:896]).all() and not run.cores[0].shared[896:1024].any()


def test_arrivals_at_the_barrier_of_another_core(cluster):
    """Both arrive, in any order; what a core may not ask is recorded by it, and what the barrier refuses by its own."""
    cluster.run(barriers=[[], [("init", 0x70, 4)]])
    arrive = ("arrive", 0x70, 2, False, 1)
    run = cluster.run(barriers=[[arrive, ("try_wait", 0x78, 1)], [arrive, ("try_wait", 0x70, 0, True)]])
    (first, own), (second, waited) = (core.barriers for core in run.cores)
    assert sorted([first.done, second.done]) == [False, True] and own.done and waited.done
    assert [[address for _, address in core.flips] for core in run.cores] == [[], [0x70]]
    assert not any(answer.error for core in run.cores for answer in core.barriers)
    refused = [("try_wait", 0x70, 0, False, 1), ("arrive", 0x74, 1, False, 1), ("arrive", 0x70, 1, False, 9),
               ("arrive", 0x70, 5, False, 1)]  # fmt: skip
    run = cluster.run(barriers=[refused], drain=20)
    assert all(answer.error and not answer.done for answer in run.cores[0].barriers)
    records = [cluster.registers(core) for core in (0, 1)]
    assert [(kept["error"], kept["error_address_lo"], kept["error_count"]) for kept in records] == [
        (Error.BARRIER_OPERATION, 0x70, 3), (Error.BARRIER_OPERATION, 0x70, 1)]  # fmt: skip


def test_a_bus_error_concerns_the_issuer_alone(cluster):
    """No barrier counts anything, and the other core's own transfers go on."""
    cluster.configure(errors=(0x100, 0x1FF, Response.SLVERR.value))
    commands = [[copy(0x100, 512, cores=[0, 1], signal=1, barrier=0x78)], [copy(0x400, 1024) for _ in range(8)]]
    run = cluster.run(commands, shared=True, drain=64)
    assert [stamp.error for stamp in run.cores[0].commands] == [Error.READ]
    assert all(stamp.error == Error.NONE for stamp in run.cores[1].commands)
    assert [Barrier.read(core.shared, 0x78).transactions for core in run.cores] == [64, 64]
    assert cluster.registers(1)["error_count"] == 0
    again = cluster.run([[copy(0x400, 512, cores=[0, 1], signal=1, barrier=0x78)]], shared=True, drain=64)
    assert [Barrier.read(core.shared, 0x78).transactions for core in again.cores] == [0, 0]


@pytest.mark.parametrize("cycles", [60, 95, 130, 170])
def test_reset_in_the_middle(cluster, cycles):
    """Whatever was under way, the next run is as after power-on."""
    both = [[copy(0x400, 512, 1024, cores=[0, 1], source_space=0, signal=1, barrier=0x78)] * 6] * 2
    run = cluster.run(both, limit=cycles)
    assert not run.finished
    shared = np.zeros(UNIT.smem.size_bytes, np.uint8)
    Barrier(expected=1, transactions=64).write(shared, 0x78)
    for memory in cluster.shared_memories:
        memory.write(0, shared)
    cluster.reset()
    run = cluster.run([[copy(0x400, 512, cores=[1], signal=1, barrier=0x78)]], shared=True, drain=64)
    assert [stamp.error for stamp in run.cores[0].commands] == [Error.NONE]
    assert [Barrier.read(core.shared, 0x78).transactions for core in run.cores] == [64, 0]


def test_replay(pair):
    """A case of two cores: tile and blocks to both and from each other, a reduction, a mask that names no core, a
    block of a processor that may not write its place, and arrivals of one core and of both, the last ones too many.
    """
    case = {
        "name": "two", "kind": "tmau", "cores": 2,
        "processors": [{}, {"shared": [1024, 2047]}],
        "gmem": {"bytes": 4096, "init": {"mix": 1}}, "smem": {"bytes": UNIT.smem.size_bytes, "init": {"fill": 0}},
        "maps": {"x": {"element": "u8", "address": 1024, "size": [64, 16], "stride": [64], "box": [16, 4],
                       "swizzle": "32B"}},
        "commands": [
            {"op": "load", "map": "x", "coords": [8, -1], "smem": 256, "multicast": 3},
            {"op": "copy_block", "src": ["global", 64], "dst": ["shared", 512], "size": 32, "core": 1, "multicast": 1},
            {"op": "copy_block", "src": ["shared", 256], "dst": ["shared", 640, 1], "size": 64, "async": True},
            {"op": "copy_block", "src": ["shared", 640], "dst": ["global", 128], "size": 64, "core": 1, "reduce": "add",
             "element": "u32"},
            {"op": "copy_block", "src": ["shared", 256, 0], "dst": ["shared", 768], "size": 32, "core": 1},
            {"op": "copy_block", "src": ["shared", 512, 0], "dst": ["global", 256], "size": 32, "core": 1},
            {"op": "load", "map": "x", "coords": [0, 0], "smem": 0, "multicast": 4},
            {"op": "copy_block", "src": ["global", 0], "dst": ["shared", 1024], "size": 16, "multicast": 3,
             "processor": 1},
            {"op": "copy_block", "src": ["global", 0], "dst": ["shared", 512], "size": 16, "processor": 1},
            {"op": "arrive", "core": 1, "from": 1, "expected": 5, "value": 2},
            {"op": "arrive", "core": 1, "from": 3, "expected": 7, "value": 3},
            {"op": "arrive", "core": 0, "from": 3, "expected": 4, "value": 4},
            {"op": "arrive", "core": 0, "from": 2, "expected": 4, "value": 4},
            {"op": "arrive", "core": 0, "from": 3, "expected": 4, "value": 3},
        ],
    }  # fmt: skip
    (read,) = cases_of({"version": 1, "cases": [case]}, "cases.json", Path())
    pair.configure(latency=20, stall=0.0, issue_stall=0.0)
    golden, outcome = run_case(read), run_cluster_on_session(read, pair)
    assert differences(outcome, golden) == []
    assert outcome.record["error"] == "cores"
    assert outcome.record["tx_bytes"] == [64, 32, 64, 64, 32, 32, 0, 16, 0, 2, 6, 0, 4, 3]


def test_mistakes(pair):
    with pytest.raises(ValueError, match=r"^commands must be lists for 2 cores, not 3$"):
        pair.run([[], [], []])
