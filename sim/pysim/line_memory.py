"""Shared memory for the Python simulator, line by line: short runs of single components."""

import random

import numpy as np

from tilewright.golden.spec import LINE_BYTES

__all__ = ["LineMemory"]


class LineMemory:
    """Takes lines from ``writes`` and hands them out on ``fetch``; run :meth:`serve` as a background testbench.

    A line that is fetched in the cycle in which it is written is the new one, as in the banks. While nothing was
    fetched, ``line`` is anything.

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
        while True:
            ctx.set(write.ready, rng.random() >= self._stall)
            ctx.set(fetch.ready, rng.random() >= self._stall)
            *_, writing, line, fetching, row = await ctx.tick().sample(
                write.valid & write.ready, write.payload, fetch.valid & fetch.ready, fetch.payload
            )
            if writing:
                strobes = np.array([line.strobe >> byte & 1 for byte in range(LINE_BYTES)], bool)
                data = np.frombuffer(line.data.to_bytes(LINE_BYTES, "little"), np.uint8)
                self._lines[line.row][strobes] = data[strobes]
                self.writes.append((cycle, line.row))
            shown = self._lines[row].tobytes() if fetching else rng.randbytes(LINE_BYTES)
            ctx.set(self._port.fetch.line, int.from_bytes(shown, "little"))
            cycle += 1
