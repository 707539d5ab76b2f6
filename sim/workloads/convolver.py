"""Runs layers on the convolution engine, in jobs that fit shared memory, and compares every job."""

import numpy as np

from tilewright.golden import Conv, ConvLayer, ConvPlan, ConvShape
from tilewright.golden.conv.plan import granularities
from tilewright.spec.conv import ConvError

from .findings import Totals

__all__ = ["Convolver"]


class Convolver:
    """Runs convolutions as jobs, strip by strip, each with all of its operands in shared memory.

    All of shared memory is written before a job. After the job all of it must equal the golden model's.

    Parameters
    ----------
    session : Session
        Of a core with a convolution engine alone.
    small : bool
        Simulation is slow: workloads take smaller pictures.
    progress : callable
        Called with the number of compared jobs.

    Attributes
    ----------
    params : ConvUnitParams
    totals : Totals
        Of all jobs.
    cases : dict of str to Totals
        Of the layers with a name.
    """

    def __init__(self, session, small=False, progress=lambda jobs: None):
        self.params = session.params.conv
        self.small = small
        self.totals = Totals("MACs")
        self.cases = {}
        self._session = session
        self._progress = progress

    def convolve(self, x, k, kind, *, stride, zeros, post, merge, case):
        """Runs a layer and returns its results from the hardware, N × Ho × Wo × Co.

        The padding gives ⌈size / stride⌉ points; its smaller half is before the first pixel.

        Parameters
        ----------
        x : array of shape (1, H, W, C)
        k : array of shape (Co, Kh, Kw, C)
        kind : str
            Type of both.
        stride, zeros, post
            See ``ConvLayer``.
        merge : int
            Kernel columns that are merged to one pixel; the blocks take the fewest cycles.
        case : str
            Name of its totals in ``cases``.
        """
        heights, widths = (_around(x.shape[axis], k.shape[axis], stride[axis - 1]) for axis in (1, 2))
        lines = -(-x.shape[1] // stride[0])
        results, first = [], 0
        while first < lines:
            count = lines - first
            while (layer := self._strip(x, k, kind, stride, zeros, post, merge, heights, widths, first, count)) is None:
                count = (count + 1) // 2
            results.append(self._run(layer, case))
            first += count
        return np.concatenate(results, axis=1)

    def _strip(self, x, k, kind, stride, zeros, post, merge, heights, widths, first, count):
        """The layer for some lines of points; None if it does not fit shared memory."""
        top = first * stride[0] - heights[0]
        bottom = top + (count - 1) * stride[0] + k.shape[1]
        rows = x[:, max(top, 0) : bottom]
        padding = (max(-top, 0), max(bottom - x.shape[1], 0), *widths)
        options = {"stride": stride, "padding": padding, "zeros": zeros, "post": post, "params": self.params.conv}
        shape = ConvShape.of(rows.shape, len(k), k.shape[1:3], stride, padding)
        plans = [ConvPlan(shape, self.params.conv, size, merge, raster=True)
                 for size in granularities(self.params.conv.row_bytes)]  # fmt: skip
        best = min(plans, key=lambda plan: max(plan.mac_cycles, plan.fetch_cycles))
        plan = {"block_bytes": best.block_bytes, "merge": merge, "raster": True}
        layer = ConvLayer(rows, k, kind, plan=plan, **options)
        if len(layer.smem) <= self.params.smem.size_bytes:
            return layer
        if count == 1:
            raise ValueError(f"a line of {x.shape[2]} pixels does not fit {self.params.smem.size_bytes} bytes")
        return None

    def _run(self, layer, case):
        """Runs a job, compares it, adds to the totals; returns the results."""
        session, size = self._session, len(layer.smem)
        session.shared_memory.write(0, layer.smem)
        run = session.run(jobs=[layer.word])
        seen = session.shared_memory.read(0, size)
        expected = layer.smem.copy()
        Conv(expected, self.params.conv).execute(layer.word)

        (end,) = run.jobs
        plan = layer.plan
        one = Totals("MACs", parts=1, work=plan.shape.macs, cycles=end.cycle - run.queued[0], limit=plan.limit)
        where = f"after {self.totals.parts} jobs"
        one.require(seen, expected, f"shared memory {where}")
        if end.code != ConvError.NONE:
            one.problems.append(f"{end.code.name} of a job {where}")
        for totals in (self.totals, self.cases.setdefault(case, Totals("MACs"))):
            totals.add(one)
        self._progress(self.totals.parts)
        return layer.result(seen)


def _around(size, taps, step):
    """Padding before and after, so that there are ⌈size / step⌉ points."""
    padding = max((-(-size // step) - 1) * step + taps - size, 0)
    return padding // 2, padding - padding // 2
