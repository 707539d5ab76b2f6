"""One program of three streams of steps: whatever can begin first comes first (docs/network.md, "The program")."""

from collections import Counter
from dataclasses import dataclass, field

from tilewright.golden import command_word, conv_words, program_word, tmau_word
from tilewright.golden.spec import BarrierOp, Opcode, Space

from ..lower.places import BLOCK
from ..plan.costs import HANDED, moved
from .order import Fence
from .steps import Transfer, job_words, layer_tag

__all__ = ["RESERVED", "Schedule", "Span"]

#: Barriers of loads and of jobs, one behind the other from address 0 of shared memory on; then the block of fences.
_LOADS, _JOBS = 8, 4
_SCRATCH = 8 * (_LOADS + _JOBS)
#: Bytes of shared memory that no buffer may lie in.
RESERVED = 128
#: Jobs that are handed over before the first of them has to have ended.
_AHEAD = 3
#: Cycles of a word of a program.
_WORD_CYCLES = 7
#: Groups of stores that are unfinished at most.
_GROUPS = 16


@dataclass(frozen=True)
class Span:
    """What an engine is expected to do: ``engine`` is "load", "conv" or "store"; cycles from ``start`` to ``end``."""

    engine: str
    layer: int
    start: int
    end: int


@dataclass(eq=False)
class Schedule:
    """The words of a program.

    Parameters
    ----------
    streams : Streams
    machine : Machine
    source : int
        Global address of 16 bytes that fences may read.
    maps : dict of Map to int
        Addresses of descriptors.

    Attributes
    ----------
    words : list of int
    spans : list of Span
        What is expected to happen when.
    cycles : int
        Expected.
    jobs : Counter
        How many each layer has.
    """

    streams: object
    machine: object
    source: int
    maps: dict
    words: list = field(default_factory=list)
    spans: list = field(default_factory=list)
    cycles: int = 0
    jobs: Counter = field(default_factory=Counter)

    def __post_init__(self):
        self._counts = {"load": 0, "conv": 0, "store": 0}  # steps that have been handed over
        self._ends = {"load": [], "conv": [], "store": [], "written": []}
        self._known = {"load": -1, "conv": -1}
        self._behind = {"read": -1, "written": -1}  # stores that the access unit has already been made to wait for
        self._free = dict.fromkeys(("load", "conv", "store", "queue"), 0)
        for number in range(_LOADS + _JOBS):
            self._barrier(BarrierOp.INIT, 8 * number, 1)
        streams = {"conv": self.streams.jobs, "store": self.streams.stores, "load": self.streams.loads}
        while left := [name for name, steps in streams.items() if self._counts[name] < len(steps)]:
            ready = {name: time for name in left if (time := self._ready(name, streams)) is not None}
            name = min(ready, key=lambda name: max(ready[name], self.cycles))
            step, *needs = streams[name][self._counts[name]]
            getattr(self, f"_{name}")(step, *needs)
            self._counts[name] += 1
        self.words.append(program_word("end", interrupt=1))
        self.cycles = max(self.cycles, *self._free.values(), *self._ends["written"][-1:])

    def _ready(self, name, streams):
        """When the next step of a stream can be handed over; None if it waits for what has not been handed over."""
        _, *needs = streams[name][self._counts[name]]
        needs = dict(zip({"load": ("conv", "store", "written"), "conv": ("load",), "store": ("conv", "load")}[name],
                         needs, strict=True))  # fmt: skip
        if name == "load":
            needs["store"] = max(needs["store"], needs.pop("written"))
            needs["load"] = self._counts["load"] - _LOADS
        elif name == "conv":
            needs["conv"] = self._counts["conv"] - _AHEAD
        if any(number >= self._counts[kind] for kind, number in needs.items()):
            return None
        return max((self._ends[kind][number] for kind, number in needs.items() if kind != "store" and number >= 0),
                   default=0)  # fmt: skip

    def _word(self, *words):
        self.words += words
        self.cycles += _WORD_CYCLES * len(words)

    def _barrier(self, operation, barrier, value):
        self._word(program_word("barrier", operation=operation, barrier=barrier, value=value))

    def _wait(self, kind, number):
        """The program waits for a load or for jobs, if it does not know that they have ended."""
        if number > self._known[kind]:
            first, count = (0, _LOADS) if kind == "load" else (_LOADS, _JOBS)
            self._barrier(BarrierOp.TRY_WAIT, 8 * (first + number % count), number // count & 1)
            self._known[kind] = number
            self.cycles = max(self.cycles, self._ends[kind][number])

    def _hold(self, state, store):
        """What follows in the access unit waits until a store has been read or written."""
        ends = self._ends["store" if state == "read" else "written"]
        newer = self._counts["store"] - 1 - store
        if store > self._behind[state] and newer < _GROUPS:
            self._word(tmau_word(command_word(Opcode.WAIT, count=newer, read=state == "read")))
            self._free["queue"] = max(self._free["queue"], ends[store])
        for known in ("read",) if state == "read" else ("read", "written"):
            self._behind[known] = max(self._behind[known], store)

    def _load(self, step, jobs, read, written):
        number = self._counts["load"]
        self._wait("load", number - _LOADS)
        self._wait("conv", jobs)
        self._hold("written", written)
        self._hold("read", read)
        fence = isinstance(step, Fence)
        transfers = [Transfer(_SCRATCH, BLOCK, self.source)] if fence else step.transfers
        barrier = 8 * (number % _LOADS)
        total = sum(transfer.size for transfer in transfers)
        self._barrier(BarrierOp.EXPECT_TX, barrier, total)
        self._barrier(BarrierOp.ARRIVE, barrier, 1)
        for transfer in transfers:
            self._word(tmau_word(self._command(transfer, True, step.layer, signal=1, barrier=barrier)))
        end = self._busy("load", step.layer, self._moved(transfers))
        self._ends["load"].append(end + self.machine.latency)

    def _conv(self, step, loads):
        number = self._counts["conv"]
        self._wait("conv", number - _AHEAD)
        self._wait("load", loads)
        for job in job_words(step, 8 * (_LOADS + number % _JOBS)):
            self._word(*conv_words(job))
        self.jobs[step.layer] += len(step.jobs)
        start = max(self.cycles + HANDED, self._free["conv"])
        self._free["conv"] = start + step.cycles
        self.spans.append(Span("conv", step.layer, start, self._free["conv"]))
        self._ends["conv"].append(self._free["conv"])

    def _store(self, step, jobs, loads):
        self._wait("conv", jobs)
        self._wait("load", loads)
        for transfer in step.transfers:
            self._word(tmau_word(self._command(transfer, False, step.layer)))
        self._word(tmau_word(command_word(Opcode.COMMIT)))
        end = self._busy("store", step.layer, self._moved(step.transfers))
        self._ends["store"].append(end)
        self._ends["written"].append(end + self.machine.latency)

    def _command(self, transfer, load, layer, **fields):
        """The command of a transfer in one of both directions."""
        fields |= {"tag": layer_tag(layer, store=not load)}
        if transfer.map:
            opcode = Opcode.LOAD if load else Opcode.STORE
            coords = transfer.coords + (0,) * (5 - len(transfer.coords))
            return command_word(opcode, descriptor=self.maps[transfer.map], smem=transfer.near, coords=coords, **fields)
        ends = {Space.GLOBAL: transfer.far, Space.SHARED: transfer.near}
        source, destination = (Space.GLOBAL, Space.SHARED) if load else (Space.SHARED, Space.GLOBAL)
        return command_word(Opcode.COPY_BLOCK, source_space=source, source=ends[source], size=transfer.size,
                            destination_space=destination, destination=ends[destination], **fields)  # fmt: skip

    def _moved(self, transfers):
        """Cycles of the bus for transfers."""
        return sum(moved(each.map and each.map.place, each.size, self.machine.bus_bytes) for each in transfers)

    def _busy(self, kind, layer, cycles):
        """The bus works in a direction for so many cycles; returns when it has ended."""
        start = max(self.cycles, self._free[kind], self._free["queue"])
        self._free[kind] = start + cycles
        self.spans.append(Span(kind, layer, start, start + cycles))
        return start + cycles
