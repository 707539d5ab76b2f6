"""Garbage programs on two cores that name each other: nothing is written outside the window, and all end."""

from collections import Counter

import numpy as np
import pytest

from tilewright.golden import CONV_PRESETS, Cluster, Cores, Memory, PeSizes, Windows
from tilewright.golden.spec import Error
from tilewright.golden.spec.cluster.errors import ClusterError
from tilewright.golden.spec.core.errors import ProgramError
from tilewright.sim.random.cluster_programs import garbage_pairs
from tilewright.sim.random.programs import DATA_WINDOW, GLOBAL_BYTES, PROGRAM_WINDOW

PAIRS = 1500
SMEM_BYTES = 4096
#: Pairs that run on one machine.
TOGETHER = 50
SIZES = PeSizes(threads=4, regs=32, segments=4, pages=8)


def machine():
    smems = [np.zeros(SMEM_BYTES, np.uint8) for _ in range(2)]
    cluster = Cluster(Memory(GLOBAL_BYTES), smems, windows=Windows(DATA_WINDOW))
    return Cores(cluster, pe=SIZES, program_window=PROGRAM_WINDOW, watchdog=True)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2, 3))])
def test_garbage(seed):
    codes, refused, cores = Counter(), set(), None
    first, last = DATA_WINDOW
    for number, pair in enumerate(garbage_pairs(seed, CONV_PRESETS["unit"], SMEM_BYTES, PAIRS)):
        cores = cores if number % TOGETHER else machine()
        gmem = cores.cores[0].gmem.data
        gmem[:] = pair.gmem
        records = cores.run(pair.starts)
        changed = gmem != pair.gmem
        assert not changed[:first].any() and not changed[last + 1 :].any(), f"seed {seed}, pair {number}"
        codes.update(record.code if record else ProgramError.NONE for record in records)
        refused |= {error.code for core in cores.cores for error in core.tmau.errors}
    # There are no convolution engines, and nobody stops a program.
    assert set(codes) == set(ProgramError) - {ProgramError.STOPPED}
    assert codes[ProgramError.NONE] > PAIRS // 20
    assert refused >= {ClusterError.CORES, Error.WINDOW, Error.BARRIER_OPERATION}
