"""An AXI4 memory for the Python simulator: short runs of single components."""

import random
from collections import deque

from tilewright.hw.bus.axi4 import Response

from .ports import set_together

__all__ = ["AxiMemory"]


class AxiMemory:
    """Answers reads and writes in order, one beat a cycle; run :meth:`serve`, :meth:`serve_writes` as background
    testbenches.

    As unhelpful as AXI4 allows where reads meet writes: a read sees the memory as it is when its request is accepted, a
    write changes it when it is answered.

    Parameters
    ----------
    axi : interface
        Of an AXI4 signature with the channels that are served, seen from outside the manager.
    contents : uint8 array
        Memory from address 0 on; addresses wrap at its size. Two memories may share it.
    latency : int
        Cycles from a request to its first beat, and from the last beat of a write to its answer.
    stall : float
        Probability of a pause before each transfer of either channel.
    seed : int
        Of the pauses.

    Attributes
    ----------
    requests, writes : list of (int, int, int, int)
        Cycle, ID, address and beats of every read and of every write.
    failing : set of int
        Addresses of bus words that are answered with SLVERR; what is written there is lost.
    last_beat : int or None
        Cycle of the last data beat so far.
    """

    def __init__(self, axi, contents, *, latency=10, stall=0.0, seed=0):
        self._axi, self._contents, self._latency = axi, contents, latency
        self._stall, self._rng = stall, random.Random(seed)
        self.requests = []
        self.writes = []
        self.failing = set()
        self.last_beat = None

    async def serve(self, ctx):
        """The testbench of the read channels."""
        axi, pending, offered, cycle = self._axi, deque(), None, 0
        ticks = aiter(ctx.tick().sample(axi.arvalid, axi.arready, axi.arid, axi.araddr, axi.arlen, axi.rready))
        while True:
            inputs = [(axi.arready, self._proceeds())]
            if offered is None and pending and pending[0][0] <= cycle and self._proceeds():
                offered = pending.popleft()
                inputs += self._beat(*offered[1:])
            set_together(ctx, *inputs, (axi.rvalid, offered is not None))
            _, _, arvalid, arready, arid, araddr, arlen, rready = await anext(ticks)
            if arvalid and arready:
                self.requests.append((cycle, arid, araddr, arlen + 1))
                for beat in range(arlen + 1):
                    place = self._place(axi.rdata, araddr, beat)
                    word = int.from_bytes(self._contents[place].tobytes(), "little")
                    pending.append((cycle + self._latency, arid, place.start, word, beat == arlen))
            if offered is not None and rready:
                if offered[1] == 0:
                    self.last_beat = cycle
                offered = None
            cycle += 1

    def _beat(self, burst_id, address, word, last):
        axi, response = self._axi, Response.SLVERR if address in self.failing else Response.OKAY
        return [(axi.rid, burst_id), (axi.rdata, word), (axi.rresp, response), (axi.rlast, last)]

    async def serve_writes(self, ctx):
        """The testbench of the write channels."""
        axi, requests, beats, pending, offered, cycle = self._axi, deque(), [], deque(), False, 0
        channels = (axi.awvalid, axi.awready, axi.awid, axi.awaddr, axi.awlen)
        channels += (axi.wvalid, axi.wready, axi.wdata, axi.wstrb, axi.wlast, axi.bready)
        ticks = aiter(ctx.tick().sample(*channels))
        while True:
            inputs = [(axi.awready, self._proceeds()), (axi.wready, self._proceeds())]
            if not offered and pending and pending[0][0] <= cycle and self._proceeds():
                offered = True
                _, burst_id, address, words = pending.popleft()
                inputs += [(axi.bid, burst_id), (axi.bresp, self._write(address, words))]
            set_together(ctx, *inputs, (axi.bvalid, offered))
            _, _, awvalid, awready, awid, awaddr, awlen, wvalid, wready, *word, last, bready = await anext(ticks)
            if awvalid and awready:
                self.writes.append((cycle, awid, awaddr, awlen + 1))
                requests.append((awid, awaddr, awlen + 1))
            if wvalid and wready:
                beats.append((*word, last))
            while requests and len(beats) >= requests[0][2]:
                burst_id, address, count = requests.popleft()
                words, beats = beats[:count], beats[count:]
                assert [last for _, _, last in words] == [0] * (count - 1) + [1], f"WLAST of the burst to {address:#x}"
                pending.append((cycle + self._latency, burst_id, address, words))
            offered = offered and not bready
            cycle += 1

    def _write(self, address, words):
        response = Response.OKAY
        for beat, (word, strobe, _) in enumerate(words):
            place = self._place(self._axi.wdata, address, beat)
            if place.start in self.failing:
                response = Response.SLVERR
                continue
            for offset in range(place.stop - place.start):
                if strobe >> offset & 1:
                    self._contents[place.start + offset] = word >> 8 * offset & 0xFF
        return response

    def _place(self, word, address, beat):
        """Where the ``beat``-th word of a burst lies."""
        word_bytes = len(word) // 8
        start = (address + beat * word_bytes) % len(self._contents)
        return slice(start, start + word_bytes)

    def _proceeds(self):
        return self._rng.random() >= self._stall
