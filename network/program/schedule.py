"""One program of three streams of steps: whatever can begin first comes first (docs/network.md, "The program")."""

from collections import Counter
from dataclasses import dataclass, field

from tilewright.golden import command_word, conv_words, program_word, tmau_word
from tilewright.spec import BarrierOp, Opcode, Space

from ..lower.places import BLOCK
from ..plan.costs import HANDED, moved, transfer_cycles
from .order import Fence
from .steps import Transfer, job_words, layer_tag

__all__ = ["RESERVED", "Schedule", "Span"]

#: Barriers of loads, and pairs of them for jobs: of their ends, and of when their weights have been read. They lie one
#: behind the other from address 0 of shared memory on; then the block of fences.
_LOADS, _JOBS = 8, 3
_SCRATCH = 8 * (_LOADS + 2 * _JOBS)
#: Bytes of shared memory that no buffer may lie in.
RESERVED = 128
#: Cycles of a word of a program.
_WORD_CYCLES = 7
#: Groups of stores that are unfinished at most.
_GROUPS = 16


def _job_barrier(number):
    """Where the first one of a job's pair of barriers lies."""
    return 8 * (_LOADS + 2 * (number % _JOBS))


@dataclass(frozen=True)
class Span:
    """What an engine is expected to do: ``engine`` is "load", "conv" or "store"; cycles from ``start`` to ``end``.

    ``words`` of the bus are moved.
    """

    engine: str
    layer: int
    start: int
    end: int
    words: int = 0


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
        self._ends = {"load": [], "conv": [], "weights": [], "store": [], "written": []}
        self._known = {"load": -1, "conv": -1, "weights": -1}
        self._early = {weights for _, _, weights, *_ in self.streams.loads}  # jobs whose weights are waited for
        self._phases, self._turns = [], [0] * _JOBS  # of each job, and how many there have been: of the second barriers
        self._behind = {"read": -1, "written": -1}  # stores that the access unit has already been made to wait for
        self._free = dict.fromkeys(("load", "conv", "store", "queue"), 0)
        for number in range(_LOADS + 2 * _JOBS):
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
        kinds = {"load": ("conv", "weights", "store", "written"), "conv": ("load",), "store": ("conv", "load")}[name]
        needs = dict(zip(kinds, needs, strict=True))
        if name == "load":
            needs["store"] = max(needs["store"], needs.pop("written"))
            needs["load"] = self._counts["load"] - _LOADS
        elif name == "conv":
            needs["conv"] = self._counts["conv"] - _JOBS
        counts = self._counts | {"weights": self._counts["conv"]}
        if any(number >= counts[kind] for kind, number in needs.items()):
            return None
        return max((self._ends[kind][number] for kind, number in needs.items() if kind != "store" and number >= 0),
                   default=0)  # fmt: skip

    def _word(self, *words):
        self.words += words
        self.cycles += _WORD_CYCLES * len(words)

    def _barrier(self, operation, barrier, value):
        self._word(program_word("barrier", operation=operation, barrier=barrier, value=value))

    def _wait(self, kind, number):
        """The program waits for a load, for jobs or for their weights, if it does not know that they have ended."""
        if number <= self._known[kind]:
            return
        if kind == "load":
            barrier, phase = 8 * (number % _LOADS), number // _LOADS
        else:
            barrier, phase = _job_barrier(number), number // _JOBS
        if kind == "weights":
            barrier, phase = barrier + 8, self._phases[number]
        self._barrier(BarrierOp.TRY_WAIT, barrier, phase & 1)
        self._known[kind] = number
        if kind == "conv":
            self._known["weights"] = max(self._known["weights"], number)
        elif kind == "weights":  # and the jobs before have ended
            self._known["conv"] = max(self._known["conv"], number - 1)
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

    def _load(self, step, jobs, weights, read, written):
        number = self._counts["load"]
        self._wait("load", number - _LOADS)
        self._wait("conv", jobs)
        self._wait("weights", weights)
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
        end = self._busy("load", step.layer, transfers)
        self._ends["load"].append(end + self.machine.latency)

    def _conv(self, step, loads):
        number = self._counts["conv"]
        self._wait("conv", number - _JOBS)
        self._wait("load", loads)
        early = number in self._early
        for job in job_words(step, _job_barrier(number), early):
            self._word(*conv_words(job))
        self._phases.append(self._turns[number % _JOBS])
        self._turns[number % _JOBS] += early
        self.jobs[step.layer] += len(step.jobs)
        start = max(self.cycles + HANDED, self._free["conv"])
        self._free["conv"] = start + step.cycles
        self._ends["weights"].append(start + step.held)
        self.spans.append(Span("conv", step.layer, start, self._free["conv"]))
        self._ends["conv"].append(self._free["conv"])

    def _store(self, step, jobs, loads):
        self._wait("conv", jobs)
        self._wait("load", loads)
        for transfer in step.transfers:
            self._word(tmau_word(self._command(transfer, False, step.layer)))
        self._word(tmau_word(command_word(Opcode.COMMIT)))
        end = self._busy("store", step.layer, step.transfers)
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

    def _busy(self, kind, layer, transfers):
        """The bus works in a direction for transfers; returns when it has ended."""
        start = max(self.cycles, self._free[kind], self._free["queue"])
        sizes = [(each.map and each.map.place, each.size) for each in transfers]
        end = self._free[kind] = start + sum(transfer_cycles(*size, self.machine) for size in sizes)
        self.spans.append(Span(kind, layer, start, end, sum(moved(*size, self.machine.bus_bytes) for size in sizes)))
        return end
