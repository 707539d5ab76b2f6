"""AXI4 in the Python simulator: channels as streams, a memory, accesses over AXI4-Lite, and a check of what passed."""

import random
from collections import defaultdict, deque
from types import SimpleNamespace

from amaranth.hdl import Cat, Value
from amaranth.lib import data

from tilewright.hw.bus.axi4 import Response

from .streams import set_together

__all__ = ["AxiHistory", "AxiMemory", "axi_channel", "read_word", "write_word"]


def axi_channel(axi, name):
    """A channel with the members of a stream: what ``send``, ``receive`` and ``watch_stream`` take.

    Parameters
    ----------
    axi : interface
        With this channel.
    name : str
        ``"ar"``, ``"r"``, ``"aw"``, ``"w"`` or ``"b"``.

    Returns
    -------
    SimpleNamespace
        ``payload`` has the channel's members without the name in front: ``id``, ``addr``, ``len``.
    """
    members = {
        member[len(name) :]: getattr(axi, member)
        for member in axi.signature.members
        if member.startswith(name) and member[len(name) :] not in ("valid", "ready")
    }
    shape = data.StructLayout({key: signal.shape() for key, signal in members.items()})
    return SimpleNamespace(
        payload=data.View(shape, Cat(Value.cast(signal) for signal in members.values())),
        valid=getattr(axi, name + "valid"),
        ready=getattr(axi, name + "ready"),
    )


_CHANNELS = {
    "ar": ("id", "addr", "len"),
    "r": ("id", "data", "resp", "last"),
    "aw": ("id", "addr", "len"),
    "w": ("data", "strb", "last"),
    "b": ("id", "resp"),
}


class AxiHistory:
    """Records a port, and judges by what AXI4 demands of a memory; run :meth:`watch` as a background testbench.

    Writes take effect in the order of their requests. A read may return a byte as any write left it that was requested
    before the beat came, unless a later write to the byte was answered before the read was requested.

    Parameters
    ----------
    axi : interface
        Of an ``Axi4Signature``.
    contents : uint8 array
        Initial contents of the memory.

    Attributes
    ----------
    events : dict of str to list
        Of each channel: cycle and members of every transfer.
    """

    def __init__(self, axi, contents):
        self._axi, self._contents = axi, contents.copy()
        self._word_bytes = len(axi.rdata) // 8
        self.events = {name: [] for name in _CHANNELS}

    async def watch(self, ctx):
        """The testbench."""
        signals, slices = [], {}
        for name, members in _CHANNELS.items():
            wanted = [f"{name}valid", f"{name}ready", *(name + member for member in members)]
            slices[name] = slice(len(signals), len(signals) + len(wanted))
            signals += [getattr(self._axi, member) for member in wanted]
        cycle = 0
        async for _, _, *values in ctx.tick().sample(*signals):
            for name, place in slices.items():
                valid, ready, *members = values[place]
                if valid and ready:
                    self.events[name].append((cycle, *members))
            cycle += 1

    def writes(self):
        """Every write as ``(requested, answered, failed, {address: byte})``, in the order of the requests."""
        words, answers = deque(self.events["w"]), defaultdict(deque)
        for cycle, ident, response in self.events["b"]:
            answers[ident].append((cycle, bool(int(response.value) & 2)))
        requests = []
        for requested, ident, address, length in self.events["aw"]:
            written = {}
            for beat in range(length + 1):
                _, word, strobe, _ = words.popleft()
                for offset in range(self._word_bytes):
                    if strobe >> offset & 1:
                        written[address + beat * self._word_bytes + offset] = word >> 8 * offset & 0xFF
            answered, failed = answers[ident].popleft()
            requests.append((requested, answered, failed, written))
        return requests

    def beats(self):
        """Every beat as ``(requested, came, failed, address, data)``; checks IDs and last beats."""
        asked = defaultdict(deque)
        for requested, ident, address, length in self.events["ar"]:
            asked[ident] += [
                (requested, address + beat * self._word_bytes, beat == length) for beat in range(length + 1)
            ]
        transfers = []
        for came, ident, word, response, last in self.events["r"]:
            requested, address, is_last = asked[ident].popleft()
            assert bool(last) == is_last, f"RLAST of the beat at {address:#x}"
            transfers.append((requested, came, bool(int(response.value) & 2), address, word))
        assert not any(asked.values()), "beats are missing"
        return transfers

    def final(self):
        """Memory after all writes that did not fail, as far as the port tells."""
        contents = self._contents.copy()
        for _, _, failed, written in self.writes():
            for address, value in written.items():
                if not failed:
                    contents[address] = value
        return contents

    def check(self, failing=()):
        """Judges every beat. Those at the addresses ``failing``, of bus words, must have failed, and no others."""
        history = defaultdict(list)
        for requested, answered, failed, written in self.writes():
            for address, value in written.items():
                if not failed:
                    history[address].append((requested, answered, value))
        for requested, came, failed, address, word in self.beats():
            assert failed == (address in failing), f"response of the beat at {address:#x} in cycle {came}"
            for offset in range(0 if failed else self._word_bytes):
                self._check_byte(
                    history[address + offset], requested, came, address + offset, word >> 8 * offset & 0xFF
                )

    def _check_byte(self, writes, requested, came, address, value):
        allowed = {int(self._contents[address])}
        for start, end, written in writes:
            if end < requested:
                allowed = {written}
            elif start <= came:
                allowed.add(written)
        assert value in allowed, f"byte {address:#x} is {value:#x} in cycle {came}, not one of {allowed}"


async def read_word(ctx, axi, address):
    """The word at a byte address, and the response."""
    ctx.set(axi.araddr, address)
    ctx.set(axi.arvalid, 1)
    ctx.set(axi.rready, 1)
    await ctx.tick().until(axi.arready)
    ctx.set(axi.arvalid, 0)
    return await ctx.tick().sample(axi.rdata, axi.rresp).until(axi.rvalid)


async def write_word(ctx, axi, address, word):
    """Writes all four bytes, which must be answered with OKAY."""
    ctx.set(axi.awaddr, address)
    ctx.set(axi.wdata, word)
    ctx.set(axi.wstrb, 15)
    for valid in (axi.awvalid, axi.wvalid, axi.bready):
        ctx.set(valid, 1)
    await ctx.tick().until(axi.awready & axi.wready)
    ctx.set(axi.awvalid, 0)
    ctx.set(axi.wvalid, 0)
    (response,) = await ctx.tick().sample(axi.bresp).until(axi.bvalid)
    assert response == Response.OKAY


class AxiMemory:
    """Answers reads and writes in order, one beat a cycle; run :meth:`serve`, :meth:`serve_writes` as background
    testbenches.

    It is as unhelpful as AXI4 allows where reads meet writes: a read returns the contents at the time when its request
    is accepted, a write takes effect when it is answered.

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
