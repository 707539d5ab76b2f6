"""Runs a program on each core of a cluster, and compares all memories: a photograph on four cores.

Each core loads its part, multiplies it by filters of a multicast, and stores the sums.
"""

from math import ceil

import numpy as np

from tilewright.golden import Cluster, ClusterGemm, Cores, GlobalMemory
from tilewright.golden.memory import mix_pattern
from tilewright.progress import report
from tilewright.spec import BarrierOp

from ..report.activity import Activity, activity
from ..session.golden_options import machine_options
from .findings import Findings, Worker
from .photographs import PIXEL_BYTES, padded_pixels

__all__ = ["BANK", "Crew", "direct", "play_filters"]


class Crew(Worker):
    """Runs a convolution on all cores at once, as a program for the command processor of each, after a reset.

    Shared memories are initialised with a pattern. At the end all bytes of global and shared memories must equal the
    golden cluster's, which ran the same programs, and no program may have stopped with an error.

    Parameters and attributes are those of a ``Worker``, whose session is a ClusterSession of cores with command
    processors.

    Attributes
    ----------
    params : ClusterParams
    """

    def __init__(self, session, **options):
        super().__init__(session, **options)
        self.params = session.params
        self._gemm = self._run = None

    def convolve(self, gemm, macs):
        """Runs a ``ClusterGemm``, which needs ``macs`` multiplications, and returns the sums in global memory."""
        self._gemm = gemm
        report("golden of all cores")
        cores = self._golden(gemm)
        report("programs of all cores")
        self._run = run = self._hardware(gemm)
        seen = self.session.global_memory.read(0, len(gemm.memory))
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
        session = self.session
        session.clear()
        session.place(gemm.memory)
        for held, smem in zip(session.shared_memories, self._smems(), strict=True):
            held.write(0, smem)
        session.run(barriers=[[(BarrierOp.INIT, gemm.barrier, 1)]] * self._working)
        return session.run_programs(gemm.starts, shared=True)

    def _require_multicast(self):
        """Checks that core 0 alone has read the kernel, and that it landed in all cores."""
        names = ("bytes", "bytes_received")
        cores = self.session.run(registers=[[(name,) for name in names]] * self._working).cores[: self._working]
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

_FILTERED = (48, 96)  # height and width of the part that is filtered

_LINES = np.array([[1, 2, 1], [-1, 0, 1], [-1, 2, -1]])  # level, edge, spot
#: Filters, each of 3 × 3: the product of a column and a row.
BANK = np.array([np.outer(down, across) for down in _LINES for across in _LINES])
#: Divisor of a sum of three colours in the picture, so that most sums fit in a byte.
_SCALES = np.array([48] + [12] * (len(BANK) - 1))


def play_filters(crew, photographs):
    """Filters the photograph by programs on all cores; the stored sums must equal the direct result."""
    photo = photographs[0][: _FILTERED[0], : _FILTERED[1]]
    height, width, colours = photo.shape
    params = crew.params
    gemm = ClusterGemm(
        padded_pixels([photo]), _kernel(), "u8s8", params.cores, padding=(1, 1, 1, 1), sizes=params.core.pe,
        smem_bytes=params.smem.size_bytes,
    )  # fmt: skip
    (sums,) = crew.convolve(gemm, height * width * BANK.size * colours)
    crew.totals.require(sums, direct(photo), "the filtered photograph in global memory")
    return Findings(
        facts=(
            f"{width} x {height} pixels, {len(BANK)} filters, {gemm.plan.tiles} tiles of {gemm.plan.gemm.m} pixels on "
            f"{params.cores} cores; {PIXEL_BYTES - colours} of {PIXEL_BYTES} channels are zeros and give no MACs",
            *crew.facts(),
        ),
        pictures={"Nine filters, as four cores stored their sums": _sheet(sums)},
        charts={"When each core loaded (in), stored (out) and multiplied (engine)": crew.activity().svg()},
    )


def direct(photo):
    """Sums of the filters, height × width × filters, computed from shifted pictures with zeros around them."""
    height, width, _ = photo.shape
    around = np.pad(photo.sum(axis=2, dtype=np.int64), 1)
    return sum(around[y : y + height, x : x + width, None] * BANK[:, y, x] for y in range(3) for x in range(3))


def _kernel():
    """The bank as a kernel: filters × rows × columns × channels, int8; all colours have the same weight."""
    kernel = np.zeros((*BANK.shape, PIXEL_BYTES), np.int8)
    kernel[..., :3] = BANK[..., None]
    return kernel


def _sheet(sums):
    """Pictures of all filters, three in a line."""
    height, width, _ = sums.shape
    maps = np.clip(np.abs(sums) // _SCALES, 0, 255).astype(np.uint8)
    sheet = maps.reshape(height, width, 3, 3).transpose(2, 0, 3, 1).reshape(3 * height, 3 * width)
    return np.repeat(sheet[..., None], 3, 2)
