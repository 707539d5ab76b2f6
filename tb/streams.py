"""Drivers of streams: a transfer happens at a clock edge with valid and ready (docs/integration.md, "Streams")."""

import cocotb
from cocotb.queue import Queue
from cocotb.triggers import RisingEdge, with_timeout

from .common import PERIOD

__all__ = ["Acceptor", "Sink", "Source", "pins"]


def pins(ports, name, fmt):
    """Handles of ``name_payload``, ``name_valid`` and ``name_ready``; the payload must have the bits of ``fmt``."""
    payload, valid, ready = (ports[f"{name}_{pin}"] for pin in ("payload", "valid", "ready"))
    assert len(payload) == fmt.bits, f"{name}_payload has {len(payload)} bits, and {fmt.name} {fmt.bits}"
    return payload, valid, ready


class Source:
    """Drives an input stream, one item at a time.

    Parameters
    ----------
    ports : Ports
    name : str
        The stream's pins are ``name_payload``, ``name_valid`` and ``name_ready``.
    fmt : Format
        Of the payload; items are its values by name, or an int with all bits.
    rng : random.Random
        Of the pauses.
    pause : float
        Probability, in each cycle before an item, of a pause.
    """

    def __init__(self, ports, name, fmt, rng, pause=0.0):
        self.pause = pause
        self._clock, self._format, self._rng = ports["clk"], fmt, rng
        self._payload, self._valid, self._ready = pins(ports, name, fmt)
        self._payload.value = 0
        self._valid.value = 0

    def withdraw(self):
        """Takes back an item that was not accepted: only right in a reset."""
        self._valid.value = 0

    async def send(self, item):
        """Returns in the cycle after the item was accepted."""
        while self._rng.random() < self.pause:
            await RisingEdge(self._clock)
        self._payload.value = item if isinstance(item, int) else self._format.pack(**item)
        self._valid.value = 1
        while True:
            await RisingEdge(self._clock)
            if int(self._ready.value):
                break
        self._valid.value = 0


class Sink:
    """Takes the items of an output stream as they come.

    Parameters
    ----------
    ports, name, fmt, rng
        As of :class:`Source`.
    pause : float
        Probability, in each cycle, of ready being low; may be changed at any time.
    """

    def __init__(self, ports, name, fmt, rng, pause=0.0):
        self.pause = pause
        self._ports, self._format, self._rng = ports, fmt, rng
        self._payload, self._valid, self._ready = pins(ports, name, fmt)
        self._items = Queue()
        self._ready.value = 0
        cocotb.start_soon(self._run())

    async def get(self, cycles=10_000):
        """The next item, its values by name; raises if none comes within ``cycles``."""
        word = await with_timeout(self._items.get(), cycles * PERIOD, "step")
        return self._format.unpack(word)

    def clear(self):
        """Forgets items that have come and were not taken with :meth:`get`."""
        while not self._items.empty():
            self._items.get_nowait()

    async def _run(self):
        ready = False
        while True:
            await RisingEdge(self._ports["clk"])
            if ready and int(self._valid.value) and not self._ports.in_reset:
                self._items.put_nowait(int(self._payload.value))
            ready = self._rng.random() >= self.pause
            self._ready.value = ready


class Acceptor:
    """Takes items of several output streams in step, for a model that runs once a cycle.

    Parameters
    ----------
    ports, rng, pause
        As of :class:`Sink`.
    formats : dict of str to Format
        Of the payloads, by the names of the streams behind ``prefix``.
    prefix : str
    """

    def __init__(self, ports, formats, rng, pause, prefix):
        self._ports, self._formats, self._rng, self._pause = ports, formats, rng, pause
        self._pins = {name: pins(ports, f"{prefix}{name}", fmt) for name, fmt in formats.items()}
        self._was_ready = dict.fromkeys(formats, False)
        for _, _, ready in self._pins.values():
            ready.value = 0

    async def cycle(self):
        """Waits for the next clock edge; returns what was taken there by name, and chooses who is ready next."""
        await RisingEdge(self._ports["clk"])
        taken = {
            name: self._formats[name].unpack(int(payload.value))
            for name, (payload, valid, _) in self._pins.items()
            if self._was_ready[name] and int(valid.value) and not self._ports.in_reset
        }
        for name, (_, _, ready) in self._pins.items():
            self._was_ready[name] = self._rng.random() >= self._pause
            ready.value = int(self._was_ready[name])
        return taken
