"""Convolutions shared out to cores: the sums of one core, and a kernel that one of them brings to all."""

import numpy as np
import pytest

from tilewright.golden import Cluster, ClusterGemm, Cores, GlobalMemory, ImplicitGemm, PeSizes, convolve
from tilewright.golden.cluster.machine import _Core
from tilewright.golden.spec import BarrierOp, Opcode
from tilewright.golden.spec.cluster.delivery import DELIVERY
from tilewright.golden.spec.tmau.command import COMMAND

SMALL = PeSizes(threads=4, regs=32, segments=8, pages=32)
SMALL_BYTES = 16 * 1024


def layer(x_shape, kernel, cores, **options):
    """A layer of random bytes, and the direct result."""
    rng = np.random.default_rng(7)
    x = rng.integers(0, 256, x_shape, np.uint8)
    k = rng.integers(-128, 128, (*kernel, x_shape[3]), np.int8)
    made = ClusterGemm(x, k, "u8s8", cores, sizes=SMALL, smem_bytes=SMALL_BYTES, **options)
    return made, convolve(x, k, "u8s8", **options)


@pytest.mark.parametrize("cores", [1, 2, 3, 16])
def test_equals_the_convolution_engine(cores):
    made, expected = layer((2, 9, 10, 16), (5, 3, 3), cores, padding=(1, 1, 1, 1))
    assert (made.run() == expected).all()
    assert len(made.starts) == cores
    assert len(made.programs) == min(cores, made.plan.tiles) > cores - 2


def test_more_cores_than_tiles():
    """Those that are left over have no program."""
    made, expected = layer((1, 3, 5, 16), (4, 3, 3), 8)
    assert made.plan.tiles == len(made.programs) == 3
    assert made.starts[3:] == [None] * 5
    assert (made.run() == expected).all()


def test_tiles_are_such_that_all_cores_have_work():
    """One core takes them as large as they fit; of several each has some."""
    shapes = (1, 8, 8, 16), (8, 3, 3)
    assert layer(*shapes, 1, padding=(1, 1, 1, 1))[0].plan.tiles < 4
    assert layer(*shapes, 4, padding=(1, 1, 1, 1))[0].plan.tiles == 4


def test_one_core_brings_the_kernel(monkeypatch):
    """Each page of it once, to all of them; a core that has not been brought it waits."""
    made, _ = layer((1, 8, 8, 16), (8, 3, 3), 2, padding=(1, 1, 1, 1))
    multicasts = []
    execute = _Core.execute

    def counted(core, word):
        delivery, command = DELIVERY.unpack(word), COMMAND.unpack(word)
        if delivery["multicast"]:
            assert command["opcode"] == Opcode.LOAD
            multicasts.append((core.number, delivery["cores"]))
        return execute(core, word)

    monkeypatch.setattr(_Core, "execute", counted)
    smems = [np.zeros(SMALL_BYTES, np.uint8) for _ in range(2)]
    cluster = Cluster(GlobalMemory(made.memory.copy()), smems)
    for core in range(2):
        cluster.barrier(core, BarrierOp.INIT, made.barrier, 1)
    cores = Cores(cluster, pe=SMALL, watchdog=True)
    records = cores.run([None, made.starts[1]])
    assert records[0] is None and records[1].code.name == "WATCHDOG"
    assert multicasts == []
    cluster.barrier(1, BarrierOp.INIT, made.barrier, 1)
    assert cores.run(made.starts) == [None, None]
    assert multicasts == [(0, 3)] * 2  # 144 bytes of K: two pages
    assert made.kernel_bytes == 2 * 128 * 8


def test_one_core_alone_is_an_implicit_gemm():
    """But for the barrier, its words are those of one core."""
    made, _ = layer((1, 8, 8, 16), (8, 3, 3), 1, padding=(1, 1, 1, 1))
    x, k = np.zeros((1, 8, 8, 16), np.uint8), np.zeros((8, 3, 3, 16), np.int8)
    alone = ImplicitGemm(x, k, "u8s8", padding=(1, 1, 1, 1), sizes=SMALL, smem_bytes=SMALL_BYTES - 128)
    assert len(made.programs[0]) == len(alone.words) + 3


@pytest.mark.parametrize(
    ("x_shape", "kernel", "cores", "message"),
    [
        ((1, 2, 2, 48), (40, 3, 3), 2, "the kernel must fit the shared memory of a core as a whole, not in"),
        ((1, 4, 4, 16), (4, 3, 3), 17, "cores must be 1 to 16, not 17"),
        ((1, 4, 4, 16), (4, 3, 3), 0, "cores must be 1 to 16, not 0"),
    ],
)
def test_what_is_refused(x_shape, kernel, cores, message):
    with pytest.raises(ValueError, match=message):
        layer(x_shape, kernel, cores, padding=(1, 1, 1, 1))
