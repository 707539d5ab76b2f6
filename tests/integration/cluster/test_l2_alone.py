"""One small access unit behind the smallest second-level cache: random commands against golden, flush and invalidation.

What is long, and has several cores, is in ``test_l2.py``.

Specification: docs/cluster.md, "L2".
"""

from itertools import islice

import numpy as np
import pytest

from tilewright.hw.cluster.l2.params import L2Params
from tilewright.hw.cluster.params import ClusterParams
from tilewright.hw.core.params import CoreParams
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.sim.session.cluster import ClusterSession
from tilewright.spec import Error, Opcode, Space
from tilewright.verify.compare.cluster_run import ClusterComparison
from tilewright.verify.random.cluster import random_cluster_batches

SEED = 6
#: What the model is quick to build with.
UNIT = TMAU_PRESETS["unit"].replace(features=("swizzle", "stores", "reductions_global", "windows"))


@pytest.fixture(scope="module")
def cluster():
    with ClusterSession(params=ClusterParams(1, CoreParams(UNIT), L2Params(1024, 2, 32)), patience=100_000) as session:
        yield session


def test_random_commands(cluster):
    """Of eight lines: they come and leave all the time; what memory has is compared behind a flush."""
    comparison, evictions = ClusterComparison(cluster), 0
    for number, batch in enumerate(islice(random_cluster_batches(SEED, 1, UNIT.smem.size_bytes, 20), 24)):
        stall = [0.0, 0.3, (0.5, 0.2)][number % 3]
        cluster.configure(
            latency=[100, 5, 20, 50][number % 4], seed=number, stall=stall, issue_stall=0.5 * (number & 1)
        )
        assert comparison.run(batch) == [], f"seed {SEED}, batch {number}"
        evictions += cluster.cache_registers()["evictions"]
    print(f"seed {SEED}: {comparison.commands} commands, {comparison.endings}, {evictions} lines left")
    assert comparison.endings[Error.NONE] > comparison.commands // 4 and evictions > 100


def test_a_range_is_flushed(cluster):
    """Lines of the range are in memory, and another one is not before all are flushed."""
    cluster.clear()
    cluster.configure(latency=20, stall=0.0, issue_stall=0.0, seed=1)
    cluster.global_memory.write(0, np.zeros(0x400, np.uint8))
    cluster.shared_memories[0].write(0, np.full(0x400, 7, np.uint8))
    cluster.run([[{"opcode": Opcode.COPY_BLOCK, "source_space": Space.SHARED, "source": 0, "destination": 0,
                   "size": 0x200}]])  # fmt: skip
    cluster.flush(0x80, 0x17F)
    memory = cluster.run(memory=(0, 0x400)).memory
    assert [int(memory[at]) for at in (0, 0x7F, 0x80, 0x17F, 0x180, 0x200)] == [0, 0, 7, 7, 0, 0]
    cluster.flush()
    assert (cluster.run(memory=(0, 0x400)).memory == np.repeat([7, 0], 0x200)).all()
