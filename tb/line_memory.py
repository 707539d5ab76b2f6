"""A shared memory for ``Tmau``, which has none: what serves its ports ``smem_…``, with pauses.

What it must do is said in docs/integration.md, "Shared memory of your own".
"""

import cocotb
import numpy as np

from tilewright.golden.spec import LINE_BYTES, BarrierOp

from .payloads import landed, line, row
from .shared_memory import operate_barrier
from .streams import Acceptor

__all__ = ["LineMemory"]


class LineMemory:
    """Takes lines and landed bytes, and hands out lines.

    Parameters
    ----------
    ports : Ports
    rng : random.Random
        Of the contents, and of pauses.
    pauses : Pauses

    Attributes
    ----------
    size : int
        Bytes.
    contents : uint8 array
    """

    def __init__(self, ports, rng, pauses):
        addr_width = len(ports["smem_refused_address"])
        self.size = 1 << addr_width
        self.contents = np.frombuffer(bytearray(rng.randbytes(self.size)), np.uint8)
        self._rng = rng
        formats = {
            "writes": line(addr_width),
            "fetch_rows": row(addr_width),
            "landed": landed(addr_width),
        }
        self._acceptor = Acceptor(ports, formats, rng, pauses.streams, "smem_")
        self._line = ports["smem_fetch_line"]
        self._refused, self._refused_address = ports["smem_refused_valid"], ports["smem_refused_address"]
        for handle in (self._line, self._refused_address):
            handle.value = 0
        self._refused.value = 0
        ports["smem_bank_conflict"].value = 0
        cocotb.start_soon(self._run())

    async def operate(self, op, address, value):
        """An operation of a processor on a barrier; its answer as (done, error)."""
        return operate_barrier(self.contents, op, address, value)

    async def image(self):
        """All of it, as a uint8 array."""
        return self.contents

    def withdraw(self):
        """Nothing is asked of the design."""

    def clear(self):
        """Nothing is left of a reset but the contents."""

    async def _run(self):
        while True:
            taken = await self._acceptor.cycle()
            if "writes" in taken:
                self._write(**taken["writes"])
            # Bytes that are fetched while they are written, and the port while nothing is, may show anything.
            fetched = taken.get("fetch_rows", {"row": self._rng.randrange(self.size // LINE_BYTES)})["row"]
            shown = self.contents[fetched * LINE_BYTES : (fetched + 1) * LINE_BYTES]
            self._line.value = int.from_bytes(shown.tobytes(), "little")
            refused = False
            if "landed" in taken:
                barrier, count = taken["landed"]["barrier"], taken["landed"]["bytes"]
                _, refused = operate_barrier(self.contents, BarrierOp.COMPLETE_TX, barrier, count)
                self._refused_address.value = barrier
            self._refused.value = int(refused)

    def _write(self, row, data, strobe):
        """Writes the bytes of a line whose strobe is set."""
        written = np.unpackbits(np.frombuffer(strobe.to_bytes(LINE_BYTES // 8, "little"), np.uint8), bitorder="little")
        place = self.contents[row * LINE_BYTES : (row + 1) * LINE_BYTES]
        np.copyto(place, np.frombuffer(data.to_bytes(LINE_BYTES, "little"), np.uint8), where=written.astype(bool))
