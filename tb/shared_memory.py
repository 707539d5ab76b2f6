"""Shared memory inside the design, through its ports, and shared memories of the testbench outside of it."""

import cocotb
import numpy as np
from cocotb.queue import Queue

from tilewright.golden.smem import Barrier
from tilewright.spec import BANKS, BARRIER, CHUNK_BYTES, LINE_BYTES, BarrierOp

from .common import Acceptor, Sink, Source
from .payloads import BARRIER_RESULT, barrier_request, landed, line, read, read_data, row, scatter

__all__ = ["BarrierPort", "ChunkMemory", "ConsumerPort", "HostMemory", "LineMemory", "operate_barrier"]


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


class HostMemory(BarrierPort):
    """And a host that fills and reads all of it over AXI4-Lite, ``master``; other parameters as of ``BarrierPort``."""

    def __init__(self, ports, rng, pauses, master):
        super().__init__(ports, rng, pauses)
        # Without windows shared memory is the upper half of the addresses.
        self._window, self._master = 1 << len(ports["s_axil_araddr"]) - 1, master

    async def fill(self, contents):
        """Replaces the first bytes by a uint8 array."""
        await self._master.write(self._window, contents.tobytes())

    async def image(self, count):
        """The first bytes, as a uint8 array."""
        return np.frombuffer((await self._master.read(self._window, count)).data, np.uint8)


class _Outside:
    """Shared memory of the testbench.

    Parameters
    ----------
    ports : Ports
    contents : uint8 array
    formats : dict of str to Format
        Of the streams that it takes, by their names after ``smem_``.
    rng : random.Random
        Of pauses.
    pauses : Pauses

    Attributes
    ----------
    size : int
        Bytes.
    contents : uint8 array
    """

    def __init__(self, ports, contents, formats, rng, pauses):
        self.size, self.contents, self._rng = len(contents), contents, rng
        self._acceptor = Acceptor(ports, formats, rng, pauses.streams, "smem_")
        ports["smem_bank_conflict"].value = 0
        cocotb.start_soon(self._run())

    async def operate(self, op, address, value):
        """An operation of a processor on a barrier; its answer as (done, error)."""
        return operate_barrier(self.contents, op, address, value)

    async def fill(self, contents):
        """Replaces the first bytes by a uint8 array."""
        self.contents[: len(contents)] = contents

    async def image(self, count=None):
        """The first bytes, or all, as a uint8 array."""
        return self.contents[:count]

    def withdraw(self):
        """Nothing is asked of the design."""

    def clear(self):
        """Nothing is left of a reset but the contents."""


class LineMemory(_Outside):
    """Takes lines and landed bytes, and hands out lines; parameters as of ``BarrierPort``. Noise at first."""

    def __init__(self, ports, rng, pauses):
        addr_width = len(ports["smem_refused_address"])
        self._line = ports["smem_fetch_line"]
        self._refused, self._refused_address = ports["smem_refused_valid"], ports["smem_refused_address"]
        for handle in (self._line, self._refused_address, self._refused):
            handle.value = 0
        contents = np.frombuffer(bytearray(rng.randbytes(1 << addr_width)), np.uint8)
        formats = {"writes": line(addr_width), "fetch_rows": row(addr_width), "landed": landed(addr_width)}
        super().__init__(ports, contents, formats, rng, pauses)

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


_LATEST = 8  # cycles until what was scattered is readable


class ChunkMemory(_Outside):
    """Answers reads and barrier operations, and takes scattered writes; parameters as of ``BarrierPort``."""

    def __init__(self, ports, rng, pauses):
        addr_width = len(ports["smem_barriers_payload"]) - barrier_request(0).bits
        self._pause = pauses.streams
        self._idle = ports["smem_scatter_idle"]
        self._scattered = []  # what is not readable yet, each with the cycles that it takes
        self._idle.value = 1
        self._lanes = len(ports["smem_read_data_payload"]) // (8 * CHUNK_BYTES)  # of an answer
        answer = read_data(self._lanes)
        self._answers = {
            "reads": _Answers(Source(ports, "smem_read_data", answer, rng, pauses.streams)),
            "barriers": _Answers(Source(ports, "smem_barrier_results", BARRIER_RESULT, rng, pauses.streams)),
        }
        formats = {"reads": read(addr_width), "scatter": scatter(addr_width), "barriers": barrier_request(addr_width)}
        super().__init__(ports, np.zeros(1 << addr_width, np.uint8), formats, rng, pauses)

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
