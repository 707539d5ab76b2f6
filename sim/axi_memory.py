"""An AXI4 read memory for the Python simulator: short runs of single components."""

import random
from collections import deque

from tilewright.hw.bus.axi4 import Response

__all__ = ["AxiMemory"]


class AxiMemory:
    """Answers reads in order, one beat a cycle; run :meth:`serve` as a background testbench.

    Parameters
    ----------
    axi : interface
        Of an ``Axi4ReadSignature``, seen from outside the manager.
    contents : uint8 array
        Memory from address 0 on; addresses wrap at its size.
    latency : int
        Cycles from a request to its first beat.
    stall : float
        Probability of a pause before each transfer of either channel.
    seed : int
        Of the pauses.

    Attributes
    ----------
    requests : list of (int, int, int, int)
        Cycle, ARID, address and beats of every request.
    failing : set of int
        Addresses of bus words that are answered with SLVERR.
    last_beat : int or None
        Cycle of the last data beat so far.
    """

    def __init__(self, axi, contents, *, latency=10, stall=0.0, seed=0):
        self._axi, self._contents, self._latency = axi, contents, latency
        self._stall, self._rng = stall, random.Random(seed)
        self.requests = []
        self.failing = set()
        self.last_beat = None

    async def serve(self, ctx):
        """The testbench."""
        axi, pending, offered, cycle = self._axi, deque(), None, 0
        while True:
            ctx.set(axi.arready, self._rng.random() >= self._stall)
            if offered is None and pending and pending[0][0] <= cycle and self._rng.random() >= self._stall:
                offered = pending.popleft()
                self._offer(ctx, *offered[1:])
            ctx.set(axi.rvalid, offered is not None)
            _, _, arvalid, arready, arid, araddr, arlen, rready = await ctx.tick().sample(
                axi.arvalid, axi.arready, axi.arid, axi.araddr, axi.arlen, axi.rready
            )
            if arvalid and arready:
                self.requests.append((cycle, arid, araddr, arlen + 1))
                for beat in range(arlen + 1):
                    address = (araddr + beat * len(axi.rdata) // 8) % len(self._contents)
                    pending.append((cycle + self._latency, arid, address, beat == arlen))
            if offered is not None and rready:
                if offered[1] == 0:
                    self.last_beat = cycle
                offered = None
            cycle += 1

    def _offer(self, ctx, burst_id, address, last):
        axi = self._axi
        word = self._contents[address : address + len(axi.rdata) // 8]
        ctx.set(axi.rid, burst_id)
        ctx.set(axi.rdata, int.from_bytes(word.tobytes(), "little"))
        ctx.set(axi.rresp, Response.SLVERR if address in self.failing else Response.OKAY)
        ctx.set(axi.rlast, last)
