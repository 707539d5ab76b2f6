"""Shared memory inside the design, through the ports that it has for processors and consumers."""

import cocotb
import numpy as np

from tilewright.golden.smem.barrier import Barrier
from tilewright.golden.spec import BANKS, BARRIER, CHUNK_BYTES

from .payloads import BARRIER_RESULT, barrier_request, read, read_data
from .streams import Sink, Source

__all__ = ["BarrierPort", "ConsumerPort", "operate_barrier"]


def operate_barrier(contents, op, address, value):
    """Performs an operation on a barrier in ``contents``, a uint8 array; its answer as (done, error)."""
    if address % BARRIER.bytes:
        return False, True
    barrier = Barrier.read(contents, address)
    try:
        done = barrier.apply(op, value)
    except ValueError:
        return False, True
    barrier.write(contents, address)
    return done, False


class BarrierPort:
    """Barrier operations of processors: ``barriers`` and ``barrier_results``.

    Parameters
    ----------
    ports : Ports
    rng : random.Random
    pauses : Pauses
    cores : int
        Of the cluster that the core is in.

    Attributes
    ----------
    size : int
        Bytes of shared memory.
    """

    def __init__(self, ports, rng, pauses, cores=1):
        addr_width = len(ports["barriers_payload"]) - barrier_request(0, cores).bits
        self.size = 1 << addr_width
        self._own = {"remote": 0, "core": 0} if cores > 1 else {}
        self.requests = Source(ports, "barriers", barrier_request(addr_width, cores), rng, pauses.streams)
        self.results = Sink(ports, "barrier_results", BARRIER_RESULT, rng, pauses.streams)

    async def operate(self, op, address, value):
        """Performs an operation; its answer as (done, error)."""
        await self.requests.send({"op": op, "address": address, "value": value} | self._own)
        result = await self.results.get()
        return bool(result["done"]), bool(result["error"])

    def withdraw(self):
        """Takes back what was not accepted, at the beginning of a reset."""
        self.requests.withdraw()

    def clear(self):
        """Forgets answers, at the end of a reset."""
        self.results.clear()


class ConsumerPort(BarrierPort):
    """And reads of any chunks: ``reads`` and ``read_data``; parameters as of ``BarrierPort``."""

    def __init__(self, ports, rng, pauses, cores=1):
        super().__init__(ports, rng, pauses, cores)
        self.reads = Source(ports, "reads", read((self.size - 1).bit_length()), rng, pauses.streams)
        self.read_data = Sink(ports, "read_data", read_data(), rng, pauses.streams)

    async def image(self):
        """All of shared memory, as a uint8 array."""
        chunks = self.size // CHUNK_BYTES
        lines = [list(range(first, first + BANKS)) for first in range(0, chunks, BANKS)]
        asking = cocotb.start_soon(self.ask(lines))
        answers = [(await self.read_data.get())["chunks"] for _ in lines]
        await asking
        return np.frombuffer(b"".join(c.to_bytes(CHUNK_BYTES, "little") for line in answers for c in line), np.uint8)

    async def ask(self, wanted):
        """Asks for the chunks of each item of ``wanted``, one a lane; answers come in this order."""
        for chunks in wanted:
            await self.reads.send({"lanes": (1 << BANKS) - 1, "chunks": chunks})

    def withdraw(self):
        super().withdraw()
        self.reads.withdraw()

    def clear(self):
        super().clear()
        self.read_data.clear()
