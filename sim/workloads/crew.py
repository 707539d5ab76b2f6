"""Runs a program on each core of a cluster, and compares all memories with the golden model."""

from math import ceil

import numpy as np

from tilewright.golden import Cluster, Cores, GlobalMemory
from tilewright.golden.memory import mix_pattern
from tilewright.progress import report
from tilewright.spec import BarrierOp

from ..report.activity import Activity, activity
from ..session.golden_options import machine_options
from .findings import Totals

__all__ = ["Crew"]


class Crew:
    """Runs a convolution on all cores at once, as a program for the command processor of each, after a reset.

    Shared memories are initialised with a pattern. At the end all bytes of global and shared memories must equal the
    golden cluster's, which ran the same programs, and no program may have stopped with an error.

    Parameters
    ----------
    session : ClusterSession
        Of cores with command processors.

    Attributes
    ----------
    params : ClusterParams
    totals : Totals
    """

    def __init__(self, session):
        self._session, self.params = session, session.params
        self.totals = Totals("MACs")
        self._gemm = self._run = None

    def convolve(self, gemm, macs):
        """Runs a ``ClusterGemm``, which needs ``macs`` multiplications, and returns the sums in global memory."""
        self._gemm = gemm
        report("golden of all cores")
        cores = self._golden(gemm)
        report("programs of all cores")
        self._run = run = self._hardware(gemm)
        seen = self._session.global_memory.read(0, len(gemm.memory))
        totals = self.totals
        totals.require(seen, cores[0].gmem.data, "global memory")
        for number, (here, core) in enumerate(zip(run.cores, cores, strict=True)):
            totals.require(here.shared, core.smem, f"shared memory of core {number}")
        totals.problems += [f"the program of core {number} stopped: {record}"
                            for number, record in enumerate(run.records) if record]  # fmt: skip
        totals.problems += [f"the bus broke {rule.name}" for rule in (*run.violations, *run.late)]
        self._require_multicast()
        self._count(macs)
        return gemm.result(seen)

    def facts(self):
        """Sentences on the kernel, and on the bus."""
        run, bus = self._run, self.params.tmau.bus_bytes
        yield f"the kernel: {self._gemm.kernel_bytes:,} bytes, read by core 0, landed in {self._working} cores"
        yield f"bus words of {bus} bytes: {run.data_beats:,} read, {run.write_beats:,} written"

    def activity(self):
        """The activity of each engine of each core over time."""
        rows = {}
        for number, (core, words) in enumerate(zip(self._run.cores, self._gemm.programs, strict=False)):
            shown = activity(core, words, window=(0, self._run.cycles)).rows
            rows |= {f"core {number}, {name.split()[-1]}": shown[name] for name in _ROWS}
        first, last = self._window()
        return Activity("A convolution on several cores", first, last, rows)

    @property
    def _working(self):
        """The number of cores that have a program."""
        return len(self._gemm.programs)

    def _smems(self):
        return [mix_pattern(self.params.smem.size_bytes, number) for number in range(self.params.cores)]

    def _golden(self, gemm):
        """Golden cores that have run the programs."""
        gmem = GlobalMemory(gemm.memory.copy())
        cluster = Cluster(gmem, self._smems(), **machine_options(self.params))
        for number in range(self._working):
            cluster.barrier(number, BarrierOp.INIT, gemm.barrier, 1)
        cores = Cores(cluster, pe=self.params.core.pe)
        if any(records := cores.run(gemm.starts)):
            raise RuntimeError(f"a program stopped on golden: {records}")
        return cores.cores

    def _hardware(self, gemm):
        """The run of the programs."""
        session = self._session
        session.clear()
        session.place(gemm.memory)
        for held, smem in zip(session.shared_memories, self._smems(), strict=True):
            held.write(0, smem)
        session.run(barriers=[[(BarrierOp.INIT, gemm.barrier, 1)]] * self._working)
        return session.run_programs(gemm.starts, shared=True)

    def _require_multicast(self):
        """Checks that core 0 alone has read the kernel, and that it landed in all cores."""
        names = ("bytes", "bytes_received")
        cores = self._session.run(registers=[[(name,) for name in names]] * self._working).cores[: self._working]
        brought, landed = np.array([[answer.data for answer in core.registers] for core in cores]).T
        kernel = [0] + [self._gemm.kernel_bytes] * (self._working - 1)
        self.totals.require(landed - brought, kernel, "bytes that landed in each core and that it did not read")

    def _count(self, macs):
        totals, run = self.totals, self._run
        first, last = self._window()
        totals.parts, totals.work, totals.cycles = self._working, macs, last - first
        engine = self.params.core.pe
        peak = self.params.cores * engine.threads * engine.unit_bytes
        totals.limit = max(ceil(macs / peak), run.data_beats, run.write_beats)

    def _window(self):
        """Cycles from the first word of any program to the end of the last program."""
        stamps = [stamp.cycle for core in self._run.cores for stamp in core.words]
        return min(stamps), max(stamps)


#: The rows of a program's ``Activity`` that are shown.
_ROWS = ("access unit, in", "access unit, out", "processing engine")
