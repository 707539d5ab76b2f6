"""A shared memory for ``Pe`` and ``Conv``, which have none: what serves its ports ``smem_…``, with pauses.

Reads are answered in order. What is scattered becomes readable later, as it may, and ``smem_scatter_idle`` is low until
then.
"""

import cocotb
import numpy as np
from cocotb.queue import Queue

from tilewright.golden.spec import CHUNK_BYTES

from .payloads import BARRIER_RESULT, barrier_request, read, read_data, scatter
from .shared_memory import operate_barrier
from .streams import Acceptor, Source

__all__ = ["ChunkMemory"]

_LATEST = 8  # cycles until what was scattered is readable


class ChunkMemory:
    """Answers reads and barrier operations, and takes scattered writes.

    Parameters
    ----------
    ports : Ports
    rng : random.Random
        Of the pauses.
    pauses : Pauses

    Attributes
    ----------
    size : int
        Bytes.
    contents : uint8 array
    """

    def __init__(self, ports, rng, pauses):
        addr_width = len(ports["smem_barriers_payload"]) - barrier_request(0).bits
        self.size = 1 << addr_width
        self.contents = np.zeros(self.size, np.uint8)
        self._rng, self._pause = rng, pauses.streams
        formats = {
            "reads": read(addr_width),
            "scatter": scatter(addr_width),
            "barriers": barrier_request(addr_width),
        }
        self._acceptor = Acceptor(ports, formats, rng, pauses.streams, "smem_")
        self._idle = ports["smem_scatter_idle"]
        self._scattered = []  # what is not readable yet, each with the cycles that it takes
        self._idle.value = 1
        ports["smem_bank_conflict"].value = 0
        self._lanes = len(ports["smem_read_data_payload"]) // (8 * CHUNK_BYTES)  # of an answer
        answer = read_data(self._lanes)
        self._answers = {
            "reads": _Answers(Source(ports, "smem_read_data", answer, rng, pauses.streams)),
            "barriers": _Answers(Source(ports, "smem_barrier_results", BARRIER_RESULT, rng, pauses.streams)),
        }
        cocotb.start_soon(self._run())

    async def operate(self, op, address, value):
        """An operation of a processor on a barrier; its answer as (done, error)."""
        return operate_barrier(self.contents, op, address, value)

    def clear(self):
        """Forgets everything but the contents, at the end of a reset."""
        self._scattered.clear()
        for answers in self._answers.values():
            answers.clear()

    async def _run(self):
        while True:
            taken = await self._acceptor.cycle()
            if "reads" in taken:
                chunks = [self._chunk(chunk) for chunk in taken["reads"]["chunks"]]
                for first in range(0, len(chunks), self._lanes):
                    self._answers["reads"].put({"chunks": chunks[first : first + self._lanes]})
            if "barriers" in taken:
                done, error = operate_barrier(self.contents, *taken["barriers"].values())
                self._answers["barriers"].put({"done": int(done), "error": int(error)})
            if "scatter" in taken:
                self._scattered.append([self._rng.randint(0, _LATEST) if self._pause else 0, taken["scatter"]])
            self._write()
            self._idle.value = int(not self._scattered)

    def _chunk(self, number):
        return int.from_bytes(self.contents[number * CHUNK_BYTES : (number + 1) * CHUNK_BYTES].tobytes(), "little")

    def _write(self):
        """Writes the oldest of what was scattered once its time has come; the others wait behind it."""
        while self._scattered and not self._scattered[0][0]:
            lanes = self._scattered.pop(0)[1]
            for chunk, data, strobes in zip(*lanes.values(), strict=True):
                for byte in range(CHUNK_BYTES):
                    if strobes >> byte & 1:
                        self.contents[chunk * CHUNK_BYTES + byte] = data >> 8 * byte & 0xFF
        if self._scattered:
            self._scattered[0][0] -= 1


class _Answers:
    """Answers on their way, in order."""

    def __init__(self, source):
        self._source = source
        self._queue = Queue()
        self._task = cocotb.start_soon(self._run())

    def put(self, answer):
        """One more."""
        self._queue.put_nowait(answer)

    def clear(self):
        """Forgets them all."""
        self._task.cancel()
        self._source.withdraw()
        self._queue = Queue()
        self._task = cocotb.start_soon(self._run())

    async def _run(self):
        while True:
            await self._source.send(await self._queue.get())
