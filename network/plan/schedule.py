"""One program of four streams of steps: whatever can begin first comes first (docs/network.md, "The program")."""

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from ..lower.places import BLOCK
from .costs import HANDED, instruction_cycles, moved, transfer_cycles
from .entries import Entries
from .steps import Fence, Segment, Transfer

__all__ = [
    "RESERVED", "Barrier", "Command", "Commit", "Hold", "Instructions", "Job", "KernelCall", "Schedule", "Span",
    "WaitKernels",
]  # fmt: skip

#: Barriers of loads, and pairs of barriers of jobs: of their ends, and of when their weights have been read. They lie
#: one after the other from address 0 of shared memory on; then the block that fences load.
_LOADS, _JOBS = 8, 3
_SCRATCH = 8 * (_LOADS + 2 * _JOBS)
#: Bytes of shared memory that no buffer may lie in.
RESERVED = 128
#: Cycles of a word of a program.
_WORD_CYCLES = 7
#: Cycles in which the processing engine loads a word into its lookup memory.
_ENTRY_CYCLES = 4
#: Groups of stores that are unfinished at most.
_GROUPS = 16


class Barrier(NamedTuple):
    """An operation of a barrier: "init", "expect_tx", "arrive" or "try_wait"."""

    operation: str
    barrier: int
    value: int
    words: int = 1


class Hold(NamedTuple):
    """The access unit waits until all groups of stores but the last ``count`` have been written, or only read."""

    count: int
    read: bool
    words: int = 1


class Command(NamedTuple):
    """A transfer: a load that ``barrier`` counts, or a store if that is None."""

    transfer: Transfer
    layer: int
    barrier: int | None
    words: int = 1


class Commit(NamedTuple):
    """Ends a group of stores."""

    words: int = 1


class Job(NamedTuple):
    """A job of the convolution engine, which arrives at ``barrier``, if there is one, and ``early`` at the next one."""

    fields: dict
    layer: int
    barrier: int | None
    early: bool
    words: int = 3


class Instructions(NamedTuple):
    """The processing engine executes ``count`` instructions from an address of global memory on."""

    address: int
    count: int
    words: int = 1


class KernelCall(NamedTuple):
    """Calls the kernel at an index of instruction memory."""

    arguments: tuple
    layer: int
    entry: int
    words: int = 1


class WaitKernels(NamedTuple):
    """The program waits until the processing engine has ended all calls."""

    words: int = 1


def _job_barrier(number):
    """Where the first of a job's pair of barriers lies."""
    return 8 * (_LOADS + 2 * (number % _JOBS))


@dataclass(frozen=True)
class Span:
    """What an engine is expected to do from cycle ``start`` to ``end``.

    ``engine`` is "load", "conv", "pe" or "store"; ``words`` of the bus are moved.
    """

    engine: str
    layer: int
    start: int
    end: int
    words: int = 0


@dataclass(eq=False)
class Schedule:
    """The instructions of a program in order.

    Parameters
    ----------
    streams : Streams
    machine : Machine
    source : int
        Global address of 16 bytes that fences may read.

    Attributes
    ----------
    instructions : list of Barrier, Hold, Command, Commit, Job, Instructions, Entry, KernelCall or WaitKernels
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
    instructions: list = field(default_factory=list)
    spans: list = field(default_factory=list)
    cycles: int = 0
    jobs: Counter = field(default_factory=Counter)

    def __post_init__(self):
        self._counts = {"load": 0, "conv": 0, "pe": 0, "store": 0}  # steps that have been handed over
        self._ends = {"load": [], "conv": [], "weights": [], "pe": [], "store": [], "written": []}
        self._known = {"load": -1, "conv": -1, "weights": -1, "pe": -1}
        # What the processing engine holds: kernels by their index, the lookup memory, and segments.
        self._kernels, self._table, self._entries = {}, (), Entries(self.machine.pe)
        self._early = {weights for _, _, weights, *_ in self.streams.loads}  # jobs whose weights are waited for
        self._phases, self._turns = [], [0] * _JOBS  # of each job, and how many there have been: of the second barriers
        self._behind = {"read": -1, "written": -1}  # stores that the access unit has already been made to wait for
        self._free = dict.fromkeys(("load", "conv", "pe", "store", "queue"), 0)
        for number in range(_LOADS + 2 * _JOBS):
            self._add(Barrier("init", 8 * number, 1))
        streams = {"conv": self.streams.jobs, "pe": self.streams.calls, "store": self.streams.stores,
                   "load": self.streams.loads}  # fmt: skip
        hand_over = {"conv": self._conv, "pe": self._pe, "store": self._store, "load": self._load}
        while pending := [name for name, steps in streams.items() if self._counts[name] < len(steps)]:
            ready = {name: time for name in pending if (time := self._ready(name, streams)) is not None}
            name = min(ready, key=lambda name: max(ready[name], self.cycles))
            hand_over[name](*streams[name][self._counts[name]])
            self._counts[name] += 1
        self.cycles = max(self.cycles + _WORD_CYCLES, *self._free.values(), *self._ends["written"][-1:])

    def _ready(self, name, streams):
        """When the next step of a stream can be handed over; None if it waits for what has not been handed over."""
        _, *needs = streams[name][self._counts[name]]
        kinds = {"load": ("conv", "weights", "pe", "store", "written"), "conv": ("load", "pe"), "pe": ("load",),
                 "store": ("conv", "load", "pe")}[name]  # fmt: skip
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

    def _add(self, instruction):
        self.instructions.append(instruction)
        self.cycles += _WORD_CYCLES * instruction.words

    def _wait(self, kind, number):
        """The program waits for a load, for jobs or for their weights, if it does not know that they have ended."""
        if number <= self._known[kind]:
            return
        if kind == "pe":  # there is no barrier of a call: all of them are waited for
            self._add(WaitKernels())
            self._known["pe"] = self._counts["pe"] - 1
            self.cycles = max(self.cycles, self._ends["pe"][-1])
            return
        if kind == "load":
            barrier, phase = 8 * (number % _LOADS), number // _LOADS
        else:
            barrier, phase = _job_barrier(number), number // _JOBS
        if kind == "weights":
            barrier, phase = barrier + 8, self._phases[number]
        self._add(Barrier("try_wait", barrier, phase & 1))
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
            self._add(Hold(newer, state == "read"))
            self._free["queue"] = max(self._free["queue"], ends[store])
        for known in ("read",) if state == "read" else ("read", "written"):
            self._behind[known] = max(self._behind[known], store)

    def _load(self, step, jobs, weights, calls, read, written):
        number = self._counts["load"]
        self._wait("load", number - _LOADS)
        self._wait("conv", jobs)
        self._wait("weights", weights)
        self._wait("pe", calls)
        self._hold("written", written)
        self._hold("read", read)
        transfers = [Transfer(_SCRATCH, BLOCK, self.source)] if isinstance(step, Fence) else step.transfers
        barrier = 8 * (number % _LOADS)
        self._add(Barrier("expect_tx", barrier, sum(transfer.size for transfer in transfers)))
        self._add(Barrier("arrive", barrier, 1))
        end = self._transfer("load", step.layer, transfers, barrier)
        self._ends["load"].append(end + self.machine.latency)

    def _conv(self, step, loads, calls):
        number = self._counts["conv"]
        self._wait("conv", number - _JOBS)
        self._wait("load", loads)
        self._wait("pe", calls)
        early, barrier = number in self._early, _job_barrier(number)
        for fields in step.jobs[:-1]:
            self._add(Job(fields, step.layer, None, False))
        self._add(Job(step.jobs[-1], step.layer, barrier, early))
        self._phases.append(self._turns[number % _JOBS])
        self._turns[number % _JOBS] += early
        self.jobs[step.layer] += len(step.jobs)
        start = max(self.cycles + HANDED, self._free["conv"])
        self._free["conv"] = start + step.cycles
        self._ends["weights"].append(start + step.held)
        self.spans.append(Span("conv", step.layer, start, self._free["conv"]))
        self._ends["conv"].append(self._free["conv"])

    def _pe(self, step, loads):
        self._wait("load", loads)
        segments, entries, used = self._entries.of(step)
        self._wait("pe", used)
        for entry in entries:
            self._add(entry)
        self._load_kernel(step.code)
        arguments = (segments[each] if isinstance(each, Segment) else each for each in step.arguments)
        self._add(KernelCall(tuple(arguments), step.layer, step.entry))
        # The word ends when the engine has taken the call, after the kernel before.
        self.cycles = start = max(self.cycles, self._free["pe"])
        self._free["pe"] = start + step.cycles
        self.spans.append(Span("pe", step.layer, start, self._free["pe"]))
        self._ends["pe"].append(self._free["pe"])

    def _load_kernel(self, code):
        """Loads what the processing engine does not hold of a kernel, in place of other kernels."""
        loads, end = [], code.index + len(code.words)
        if self._kernels.get(code.index) != code.words:
            kept = {index: words for index, words in self._kernels.items()
                    if index >= end or index + len(words) <= code.index}  # fmt: skip
            self._kernels = kept | {code.index: code.words}
            loads.append((code.load, 1))
        if code.lookup and code.lookup != self._table:
            self._table = code.lookup
            loads.append((code.load_table, _ENTRY_CYCLES))
        for load, each in loads:
            self._add(Instructions(*load))
            cycles = instruction_cycles(load[1], each, self.machine)
            self.cycles = max(self.cycles, self._free["pe"]) + cycles

    def _store(self, step, jobs, loads, calls):
        self._wait("conv", jobs)
        self._wait("load", loads)
        self._wait("pe", calls)
        end = self._transfer("store", step.layer, step.transfers, None)
        self._ends["store"].append(end)
        self._ends["written"].append(end + self.machine.latency)

    def _transfer(self, kind, layer, transfers, barrier):
        """The bus works in a direction for transfers; returns when it has ended."""
        for transfer in transfers:
            self._add(Command(transfer, layer, barrier))
        if barrier is None:
            self._add(Commit())
        start = max(self.cycles, self._free[kind], self._free["queue"])
        sizes = [(each.map and each.map.place, each.size) for each in transfers]
        end = self._free[kind] = start + sum(transfer_cycles(*size, self.machine) for size in sizes)
        self.spans.append(Span(kind, layer, start, end, sum(moved(*size, self.machine.bus_bytes) for size in sizes)))
        return end
