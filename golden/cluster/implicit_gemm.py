"""A convolution as a program for each core of a cluster; one brings the kernel (docs/cluster.md, "Convolutions")."""

import numpy as np

from ..arguments import integer, room
from ..core.implicit_gemm import ImplicitGemm
from ..core.implicit_plan import plan_implicit
from ..core.words import program_bytes, program_word
from ..memory import GlobalMemory
from ..spec import LINE_BYTES, BarrierOp
from ..spec.cluster.delivery import MOST_CORES
from .cores import Cores
from .machine import Cluster, delivery_bits

__all__ = ["ClusterGemm"]


class ClusterGemm(ImplicitGemm):
    """A layer as of :class:`ImplicitGemm`, whose tiles are shared out to the cores of a cluster, a program for each.

    Core 0 loads the kernel into all of them by multicasts. Each one awaits it at its barrier, which whoever starts the
    programs has initialised for one arrival. If there are fewer tiles than cores, the last cores have no program.

    Parameters
    ----------
    x, k, type
        As of an ``ImplicitGemm``.
    cores : int
        1 to 16.
    smem_bytes : int
        Bytes of the shared memory of each core, all of which its program may use.
    **options
        As of an ``ImplicitGemm``.

    Attributes
    ----------
    programs : list of list of int
        Of each core that has one, packed.
    starts : list of (int, int) or None
        Of each core where its program lies in ``memory``, and its number of words; None: it has none.
    barrier : int
        Address of the barrier of each core.
    kernel_bytes : int
        That core 0 brings to each core.
    shape, plan, memory
        As of an ``ImplicitGemm``.

    Raises
    ------
    TypeError, ValueError
        As of an ``ImplicitGemm``, and if the kernel does not fit shared memory as a whole.
    """

    def __init__(self, x, k, type, cores, *, smem_bytes=128 * 1024, **options):  # noqa: A002
        self._cores = integer("cores", cores, 1, MOST_CORES)
        self.barrier = room("smem_bytes", smem_bytes) - LINE_BYTES
        if self.barrier < 0:
            raise ValueError(f"smem_bytes must be {LINE_BYTES} or more, not {smem_bytes}")
        super().__init__(x, k, type, smem_bytes=self.barrier, **options)

    def run(self):
        """The sums as the golden cluster computes them; RuntimeError if a program stops with an error."""
        smems = [np.zeros(self._smem_bytes + LINE_BYTES, np.uint8) for _ in range(self._cores)]
        cluster = Cluster(GlobalMemory(self.memory.copy()), smems)
        for core in range(self._cores):
            cluster.barrier(core, BarrierOp.INIT, self.barrier, 1)
        records = Cores(cluster, pe=self.sizes).run(self.starts)
        if any(records):
            raise RuntimeError(f"a program stopped: {records}")
        return self.result(cluster.cores[0].gmem.data)

    def _planned(self):
        plan = plan_implicit(self.shape, self.kind, self.sizes, self._smem_bytes, self._cores)
        if plan.parts > 1:
            raise ValueError(f"the kernel must fit the shared memory of a core as a whole, not in {plan.parts} parts")
        return plan

    def _place_programs(self):
        plan = self.plan
        shares = [tiles.tolist() for tiles in np.array_split(range(plan.tiles), min(self._cores, plan.tiles))]
        multicast = delivery_bits(range(len(shares)))
        kernel = [word | multicast for word in self._kernel_loads(0, signal=1, barrier=self.barrier)]
        self.kernel_bytes = len(kernel) * self._page_columns(plan.b) * plan.gemm.n * self.kind.bytes
        awaited = [
            program_word("barrier", operation=operation, barrier=self.barrier, value=value)
            for operation, value in (("expect_tx", self.kernel_bytes), ("arrive", 1), ("try_wait", 0))
        ]
        self.programs = [self._program(tiles, [] if core else kernel, awaited) for core, tiles in enumerate(shares)]
        self.starts = [(self._place(program_bytes(words)), len(words)) for words in self.programs]
        self.starts += [None] * (self._cores - len(shares))
