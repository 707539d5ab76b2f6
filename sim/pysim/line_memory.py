"""Shared memory for the Python simulator, line by line: short runs of single components."""

import random

import numpy as np

from tilewright.golden.spec import LINE_BYTES
from tilewright.hw.smem.layouts import whole_line

from .ports import set_together

__all__ = ["LineMemory"]


class LineMemory:
    """Takes lines from ``writes`` and hands them out on ``fetch``; run :meth:`serve` as a background testbench.

    Bytes that are fetched in the cycle in which they are written are anything, as in the banks. So is ``line`` while
    nothing was fetched.

    Parameters
    ----------
    port : interface
        With ``writes`` and ``fetch``, as of the load path.
    contents : uint8 array
        Changed in place.
    stall : float
        Probability of a pause of either stream.
    seed : int
        Of the pauses.

    Attributes
    ----------
    writes : list of (int, int)
        Cycle and row of every line written.
    """

    def __init__(self, port, contents, *, stall=0.0, seed=0):
        self._port, self._lines, self._stall = port, contents.reshape(-1, LINE_BYTES), stall
        self._rng = random.Random(seed)
        self.writes = []

    async def serve(self, ctx):
        """The testbench."""
        write, fetch, rng, cycle = self._port.writes, self._port.fetch.rows, self._rng, 0
        line = (write.payload.row, whole_line(write.payload.data), write.payload.strobe)
        signals = (write.valid & write.ready, *line, fetch.valid & fetch.ready, fetch.payload)
        ticks, shown = aiter(ctx.tick().sample(*signals)), []
        while True:
            paces = [(stream.ready, rng.random() >= self._stall) for stream in (write, fetch)]
            set_together(ctx, *paces, *shown)
            *_, writing, written, data, strobe, fetching, row = await anext(ticks)
            if writing:
                strobes = np.unpackbits(_bytes(strobe, LINE_BYTES // 8), bitorder="little").astype(bool)
                self._lines[written][strobes] = _bytes(data, LINE_BYTES)[strobes]
                self.writes.append((cycle, written))
            line = np.frombuffer(rng.randbytes(LINE_BYTES), np.uint8).copy()
            if fetching:
                known = ~strobes if writing and row == written else slice(None)
                line[known] = self._lines[row][known]
            shown = [(self._port.fetch.line, int.from_bytes(line.tobytes(), "little"))]
            cycle += 1


def _bytes(number, count):
    return np.frombuffer(number.to_bytes(count, "little"), np.uint8)
