"""Shared memory for the Python simulator, line by line: short runs of single components."""

import random

import numpy as np
from amaranth.hdl import Value

from tilewright.golden.spec import LINE_BYTES

from .ports import set_together
from .unpacked import unpacker

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
        signals = (write.valid & write.ready, Value.cast(write.payload), fetch.valid & fetch.ready, fetch.payload)
        ticks, unpack, shown = aiter(ctx.tick().sample(*signals)), unpacker(write.payload.shape()), []
        while True:
            paces = [(stream.ready, rng.random() >= self._stall) for stream in (write, fetch)]
            set_together(ctx, *paces, *shown)
            *_, writing, bits, fetching, row = await anext(ticks)
            if writing:
                line = unpack(bits)
                strobes = np.unpackbits(_bytes(line.strobe, LINE_BYTES // 8), bitorder="little").astype(bool)
                self._lines[line.row][strobes] = _bytes(line.data, LINE_BYTES)[strobes]
                self.writes.append((cycle, line.row))
            line = self._lines[row].tobytes() if fetching else rng.randbytes(LINE_BYTES)
            shown = [(self._port.fetch.line, int.from_bytes(line, "little"))]
            cycle += 1


def _bytes(number, count):
    return np.frombuffer(number.to_bytes(count, "little"), np.uint8)
