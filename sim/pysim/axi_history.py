"""What passed through an AXI4 port, and whether a memory could have answered so."""

from collections import defaultdict, deque

__all__ = ["AxiHistory"]

_CHANNELS = {
    "ar": ("id", "addr", "len"),
    "r": ("id", "data", "resp", "last"),
    "aw": ("id", "addr", "len"),
    "w": ("data", "strb", "last"),
    "b": ("id", "resp"),
}


class AxiHistory:
    """Records a port, and judges by what AXI4 demands of a memory; run :meth:`watch` as a background testbench.

    Writes take effect in the order of their requests. A read may find a byte as any write left it that was requested
    before the beat came, but for those that were followed by another one that was answered before the read was
    requested.

    Parameters
    ----------
    axi : interface
        Of an ``Axi4Signature``.
    contents : uint8 array
        What memory holds at first.

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
        found = []
        for requested, ident, address, length in self.events["aw"]:
            written = {}
            for beat in range(length + 1):
                _, data, strobe, _ = words.popleft()
                for offset in range(self._word_bytes):
                    if strobe >> offset & 1:
                        written[address + beat * self._word_bytes + offset] = data >> 8 * offset & 0xFF
            answered, failed = answers[ident].popleft()
            found.append((requested, answered, failed, written))
        return found

    def beats(self):
        """Every beat as ``(requested, came, failed, address, data)``; checks IDs and last beats."""
        asked = defaultdict(deque)
        for requested, ident, address, length in self.events["ar"]:
            asked[ident] += [
                (requested, address + beat * self._word_bytes, beat == length) for beat in range(length + 1)
            ]
        found = []
        for came, ident, data, response, last in self.events["r"]:
            requested, address, is_last = asked[ident].popleft()
            assert bool(last) == is_last, f"RLAST of the beat at {address:#x}"
            found.append((requested, came, bool(int(response.value) & 2), address, data))
        assert not any(asked.values()), "beats are missing"
        return found

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
        for requested, came, failed, address, data in self.beats():
            assert failed == (address in failing), f"response of the beat at {address:#x} in cycle {came}"
            for offset in range(0 if failed else self._word_bytes):
                self._check_byte(
                    history[address + offset], requested, came, address + offset, data >> 8 * offset & 0xFF
                )

    def _check_byte(self, writes, requested, came, address, value):
        allowed = {int(self._contents[address])}
        for start, end, written in writes:
            if end < requested:
                allowed = {written}
            elif start <= came:
                allowed.add(written)
        assert value in allowed, f"byte {address:#x} is {value:#x} in cycle {came}, not one of {allowed}"
