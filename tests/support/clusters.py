"""Random commands and garbage on clusters, against golden."""

from itertools import islice

from tilewright.hw.cluster.l2.params import L2Params
from tilewright.hw.cluster.params import ClusterParams
from tilewright.hw.core.params import ENGINES, core_params
from tilewright.spec import Opcode, Space
from tilewright.verify.compare.cluster_run import ClusterComparison
from tilewright.verify.random.cluster import random_cluster_batches
from tilewright.verify.random.mixed import garbage_mixes

__all__ = ["PARAMS", "compare_garbage", "compare_random", "copy"]

#: Two cores with all engines and a cache: the model of tests of programs and of networks.
PARAMS = ClusterParams(2, core_params("unit", ENGINES), L2Params(1 << 13, 2))

#: Pauses of the bus and before commands, in turn.
STALLS = [{"stall": 0.0, "issue_stall": 0.0}, {"stall": 0.0, "issue_stall": 0.5},
          {"stall": 0.3, "issue_stall": 0.0}, {"stall": (0.5, 0.2), "issue_stall": 0.3}]  # fmt: skip


def copy(source, destination, size=64, **fields):
    """A copy to shared memory, of global memory, if nothing else is said."""
    return {"opcode": Opcode.COPY_BLOCK, "destination_space": Space.SHARED, "source": source, "size": size,
            "destination": destination} | fields  # fmt: skip


def compare_random(session, seed, batches, commands=20):
    """Batches of random commands, each with pauses of its own; returns the comparison."""
    comparison, cores = ClusterComparison(session), session.params.cores
    drawn = random_cluster_batches(seed, cores, session.params.smem.size_bytes, commands)
    for number, batch in enumerate(islice(drawn, batches)):
        session.configure(latency=[100, 5, 20][number % 3], seed=number, **STALLS[number % len(STALLS)])
        assert comparison.run(batch) == [], f"seed {seed}, batch {number}"
    print(f"seed {seed}: {comparison.commands} commands of {cores} cores, {comparison.endings}")
    return comparison


def compare_garbage(session, params, seed, count, delivery, behind=lambda: None):
    """So many commands of garbage, by turns of two cores, each delivered as ``delivery()`` says; ``behind()`` is called
    after each batch. Returns the comparison.
    """
    comparison = ClusterComparison(session)
    for number, batch in enumerate(garbage_mixes(seed, params, count)):
        session.configure(latency=batch.latency, stall=batch.stall, seed=batch.seed, issue_stall=0.0)
        delivered = [delivery() for _ in batch.orders]
        assert comparison.run_garbage(batch, number % 2, delivered) == [], f"seed {seed}, batch {number}"
        behind()
    print(f"seed {seed}: {comparison.commands} commands, {comparison.endings}")
    return comparison
