"""Models of shared memory for the Python simulator: by lines for the load path, by chunks for engines."""

import random
from collections import deque

import numpy as np
from amaranth.hdl import Value

from tilewright.golden.smem import Barrier
from tilewright.spec import CHUNK_BYTES, LINE_BYTES, BarrierOp
from tilewright.verify.pysim.streams import set_together, unpacker

__all__ = ["EngineMemory", "LineMemory", "line_bits"]


def line_bits(line):
    """What ``whole_line`` of ``hw.smem.layouts`` makes of a line that has come: in Amaranth it takes a hundred times
    as long as a cycle.
    """
    if isinstance(line, int):
        return line
    size = line.shape()["word"].width // 8
    words = [line.first_word if line.first >> segment & 1 else line.word for segment in range(LINE_BYTES // size)]
    made = np.frombuffer(b"".join(word.to_bytes(size, "little") for word in words), np.uint8)
    fill = np.frombuffer(line.fill.to_bytes(4, "little") * (LINE_BYTES // 4), np.uint8)
    filled = np.unpackbits(_bytes(line.filled, LINE_BYTES // 8), bitorder="little")
    return int.from_bytes(np.where(filled, fill, made).tobytes(), "little")


class LineMemory:
    """Accepts lines on ``writes`` and returns them on ``fetch``; run :meth:`serve` as a background testbench.

    Bytes that are fetched in the cycle in which they are written are random, because the banks leave them open. So is
    ``line`` in cycles after which nothing was fetched.

    Parameters
    ----------
    port : interface
        With ``writes`` and ``fetch`` of the load path.
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
        unpack = unpacker(write.payload.shape())
        signals = (write.valid & write.ready, Value.cast(write.payload), fetch.valid & fetch.ready, fetch.payload)
        ticks, shown = aiter(ctx.tick().sample(*signals)), []
        while True:
            paces = [(stream.ready, rng.random() >= self._stall) for stream in (write, fetch)]
            set_together(ctx, *paces, *shown)
            *_, writing, bits, fetching, row = await anext(ticks)
            if writing:
                come = unpack(bits)
                written = come.row
                strobes = np.unpackbits(_bytes(come.strobe, LINE_BYTES // 8), bitorder="little").astype(bool)
                self._lines[written][strobes] = _bytes(line_bits(come.data), LINE_BYTES)[strobes]
                self.writes.append((cycle, written))
            line = np.frombuffer(rng.randbytes(LINE_BYTES), np.uint8).copy()
            if fetching:
                known = ~strobes if writing and row == written else slice(None)
                line[known] = self._lines[row][known]
            shown = [(self._port.fetch.line, int.from_bytes(line.tobytes(), "little"))]
            cycle += 1


def _bytes(number, count):
    return np.frombuffer(number.to_bytes(count, "little"), np.uint8)


_LATENCY = 2


class EngineMemory:
    """Answers reads two cycles later, writes what is scattered, and takes arrivals.

    Parameters
    ----------
    port : SharedMemorySignature
        Of the engine.
    contents : uint8 array
        Changed in place.
    reset : value
        Resets the engine: what has been asked is not answered.
    """

    def __init__(self, port, contents, reset=0):
        self._port, self._contents, self._reset = port, contents, Value.cast(reset)
        self._waiting = deque()  # cycle of each answer, and its chunks

    @property
    def processes(self):
        """Background testbenches."""
        return [self._reads, self._writes, self._barriers]

    async def _reads(self, ctx):
        port, waiting, cycle = self._port, self._waiting, 0
        ctx.set(port.reads.ready, 1)
        ctx.set(port.scatter_idle, 1)
        async for _, _, reset, asked, request, answered, taken in ctx.tick().sample(
            self._reset, port.reads.valid, port.reads.payload, port.read_data.valid, port.read_data.ready
        ):
            cycle += 1
            if answered and taken:
                waiting.popleft()
            if reset:
                waiting.clear()
            elif asked:
                chunks, ways = self._chunks(request.chunks), len(port.read_data.payload)
                for part in range(0, len(chunks), ways):
                    waiting.append((cycle + _LATENCY - 1, chunks[part : part + ways]))
            shown = waiting and waiting[0][0] <= cycle
            ctx.set(port.read_data.valid, bool(shown))
            if shown:
                ctx.set(port.read_data.payload, waiting[0][1])

    def _chunks(self, numbers):
        chunks = self._contents.reshape(-1, CHUNK_BYTES)
        return [int.from_bytes(chunks[number].tobytes(), "little") for number in numbers]

    async def _writes(self, ctx):
        port = self._port
        ctx.set(port.scatter.ready, 1)
        chunks = self._contents.reshape(-1, CHUNK_BYTES)
        async for _, _, valid, write in ctx.tick().sample(port.scatter.valid, port.scatter.payload):
            for number, data, strobe in zip(write.chunks, write.data, write.strobes, strict=True) if valid else ():
                mask = np.array([strobe >> byte & 1 for byte in range(CHUNK_BYTES)], bool)
                raw = np.frombuffer(int(data).to_bytes(CHUNK_BYTES, "little"), np.uint8)
                chunks[number][mask] = raw[mask]

    async def _barriers(self, ctx):
        port = self._port
        ctx.set(port.barriers.ready, 1)
        async for _, _, valid, request in ctx.tick().sample(port.barriers.valid, port.barriers.payload):
            ctx.set(port.barrier_results.valid, 0)
            if valid:
                assert request.op == BarrierOp.ARRIVE
                ctx.set(port.barrier_results.payload, {"error": self._arrive(request)})
                ctx.set(port.barrier_results.valid, 1)

    def _arrive(self, request):
        barrier = Barrier.read(self._contents, request.address)
        try:
            barrier.arrive(request.value)
        except ValueError:
            return 1
        barrier.write(self._contents, request.address)
        return 0
