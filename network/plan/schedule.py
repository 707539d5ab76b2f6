"""One program of streams of steps: whatever can begin first comes first (docs/network.md, "The program")."""

from bisect import bisect_left
from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field
from math import ceil

from tilewright.spec import BANKS
from tilewright.spec.core import WORD_BYTES

from ..barriers import (
    JOBS,
    LOADS,
    MEETINGS,
    SCRATCH,
    TOKEN,
    TURNS,
    cast_barrier,
    job_barrier,
    load_barrier,
    ready_barrier,
)
from ..lower.places import BLOCK
from ..tiling.costs import HANDED, instruction_cycles, moved, transfer_cycles
from .entries import Entries
from .instructions import Barrier, Command, Commit, Hold, Instructions, Job, KernelCall, Signal, Span, WaitKernels
from .steps import Fence, Segment, Transfer, cast_of, order_of

__all__ = ["Schedule"]

#: Cycles of a word of a program.
_WORD_CYCLES = 7
#: Cycles in which the processing engine loads a word into its lookup memory.
_ENTRY_CYCLES = 4
#: Groups of stores that are unfinished at most.
_GROUPS = 16
#: Of which kinds are the steps that a step of a stream waits for, as in ``Streams``.
_NEEDS = {"load": ("conv", "weights", "pe", "store", "written", "load"), "conv": ("load", "pe"), "pe": ("load",),
          "store": ("conv", "load", "pe"), "meet": ("load", "store")}  # fmt: skip
#: Cycles to fetch a descriptor, in addition to the latency of memory.
_FETCHED = 27
#: Cycles from a word that signals to another core until the barrier there has counted it.
_SIGNAL_CYCLES = 50


@dataclass(eq=False)
class Schedule:
    """The instructions of the program of a core in order.

    Parameters
    ----------
    streams : Streams
    machine : Machine
    source : int
        Global address of 16 bytes that fences may read.
    core : int
    together : Together
        What cores know of each other.

    Attributes
    ----------
    instructions : list of Barrier, Hold, Command, Commit, Job, Instructions, Entry, KernelCall, Signal or WaitKernels
    spans : list of Span
        What is expected to happen when.
    cycles : int
        Expected.
    jobs : Counter
        How many each layer has.
    times : dict
        For each step the cycle in which it could have begun if steps did not have to wait for their turn.
    """

    streams: object
    machine: object
    source: int
    core: int
    together: object
    instructions: list = field(default_factory=list)
    spans: list = field(default_factory=list)
    cycles: int = 0
    jobs: Counter = field(default_factory=Counter)
    times: dict = field(default_factory=dict)

    def __post_init__(self):
        self._counts = dict.fromkeys(("load", "conv", "pe", "store", "meet"), 0)  # steps that have been handed over
        self._ends = {"load": [], "conv": [], "weights": [], "pe": [], "store": [], "written": []}
        self._known = {"conv": -1, "weights": -1, "pe": -1, "meet": -1}
        # How many loads of each order are known to have landed; numbers of loads for this core alone (None), and of the
        # multicasts of each group.
        self._landed, self._issued = Counter(), defaultdict(list)
        self._words_a_word = ceil(WORD_BYTES / self.machine.bus_bytes)
        # What the processing engine holds: kernels by their index, the lookup memory, and segments.
        self._kernels, self._table, self._entries = {}, (), Entries(self.machine.pe)
        self._early = {weights for _, _, weights, *_ in self.streams.loads}  # jobs whose weights are waited for
        self._phases, self._turns = [], [0] * JOBS  # of each job, and how many there have been: of the second barriers
        self._behind = {"read": -1, "written": -1}  # stores that the access unit has already been made to wait for
        self._free = dict.fromkeys(("load", "conv", "pe", "store", "queue"), 0)
        self._called = None  # the span of the last call, and its accesses in a cycle
        self._descriptors = deque(maxlen=self.machine.descriptors)  # those that the access unit holds
        for number in range(LOADS + 2 * JOBS):
            self._add(Barrier("init", 8 * number, 1))
        # If several can begin at once, a store of what a call has made comes first: it would wait for the next call.
        self._steps = {"conv": self.streams.jobs, "store": self.streams.stores, "pe": self.streams.calls,
                       "meet": self.streams.meets, "load": self.streams.loads}  # fmt: skip

    def next(self):
        """When the core hands over its next step, and the stream of it; None if all are done or wait for other cores.

        A core alone has a next step until all are done.
        """
        pending = [name for name, steps in self._steps.items() if self._counts[name] < len(steps)]
        ready = {name: max(time, self.cycles) for name in pending if (time := self._ready(name)) is not None}
        if not ready:
            assert not pending or self.together.cores > 1, "each step waits for another one"
            return None
        name = min(ready, key=ready.get)
        return ready[name], name

    def hand_over(self, name):
        """Adds the instructions of the next step of a stream."""
        hand_over = {"conv": self._conv, "pe": self._pe, "store": self._store, "meet": self._meet, "load": self._load}
        step, *needs = self._steps[name][self._counts[name]]
        ends = (self._end(kind, each) for kind, numbers in zip(_NEEDS[name], needs, strict=True)
                for each in (numbers if kind == "load" else (numbers,)) if each >= 0)  # fmt: skip
        self.times[step] = max((self._others(name, step), *ends))
        hand_over[name](step, *needs)
        self._counts[name] += 1

    def end(self):
        """The program is complete."""
        left = {name: len(steps) - self._counts[name] for name, steps in self._steps.items()}
        assert not any(left.values()), f"core {self.core} waits for other cores for ever, with steps left: {left}"
        self.cycles = max(self.cycles + _WORD_CYCLES, *self._free.values(), *self._ends["written"][-1:])

    def _ready(self, name):
        """When the next step of a stream can be handed over; None if it waits for what has not been handed over."""
        step, *needs = self._steps[name][self._counts[name]]
        needs = dict(zip(_NEEDS[name], needs, strict=True))
        others = self._others(name, step)
        if others is None:
            return None
        if name == "load":
            needs["store"] = max(needs["store"], needs.pop("written"))
            needs["load"] = *needs["load"], *self._before(step)
        elif name == "conv":
            needs["conv"] = self._counts["conv"] - JOBS
        counts = self._counts | {"weights": self._counts["conv"]}
        needs = [(kind, each) for kind, number in needs.items()
                 for each in (number if kind == "load" else (number,)) if each >= 0]  # fmt: skip
        if any(number >= counts[kind] for kind, number in needs):
            return None
        times = [others, *(self._end(*need) for need in needs if need[0] != "store")]
        if name == "pe" or any(kind == "pe" and number > self._known["pe"] for kind, number in needs):
            times.append(self._free["pe"])  # the word of a call, and a wait for calls, take until all have ended
        return None if None in times else max(times)

    def _others(self, name, step):
        """When other cores let a step be handed over; None if they have not yet handed over what it waits for."""
        times = [0]
        if name == "meet" and step.number:
            times.append(self.together.all_met(step.number - 1))
        elif name in ("load", "store") and not isinstance(step, Fence):
            if step.met >= 0:
                times.append(self.together.all_met(step.met))
            if (cast := cast_of(step)) and cast.cores[0] == self.core:
                times.append(self.together.all_free(cast))
        return None if None in times else max(times)

    def _before(self, step):
        """The load that had the barrier of the next load before, in a tuple, or none."""
        cast = cast_of(step)
        count, issued = TURNS if cast else LOADS, self._issued[cast and cast.group]
        return issued[-count:][:1] if len(issued) >= count else ()

    def _end(self, kind, number):
        """When a step has ended; None if another core brings its bytes and has not yet handed that over."""
        end = self._ends[kind][number]
        return self.together.brought(-1 - end) if end < 0 else end

    def _add(self, instruction):
        self.instructions.append(instruction)
        self.cycles += _WORD_CYCLES * instruction.words
        if self.together.ports:  # the words are read through the port, too
            self.together.ports["load"].pass_words(self.cycles, instruction.words * self._words_a_word)

    def _wait(self, kind, number):
        """The program waits for jobs, for their weights or for calls, if it does not know that they have ended."""
        if number <= self._known[kind]:
            return
        if kind == "pe":  # there is no barrier of a call: all of them are waited for
            self._add(WaitKernels())
            self._known["pe"] = self._counts["pe"] - 1
            self.cycles = max(self.cycles, self._ends["pe"][-1])
            return
        barrier, phase = job_barrier(number), number // JOBS
        if kind == "weights":
            barrier, phase = barrier + 8, self._phases[number]
        self._add(Barrier("try_wait", barrier, phase & 1))
        self._known[kind] = number
        if kind == "conv":
            self._known["weights"] = max(self._known["weights"], number)
        elif kind == "weights":  # and the jobs before have ended
            self._known["conv"] = max(self._known["conv"], number - 1)
        self.cycles = max(self.cycles, self._end(kind, number))

    def _wait_for_loads(self, numbers):
        """The program waits for loads, if it does not know that they have landed."""
        for number in numbers:
            step = self.streams.loads[number][0]
            cast, order = cast_of(step), order_of(step, self.core)
            if number >= self._landed[order]:
                place = cast.turn if cast else bisect_left(self._issued[None], number)
                barrier, turns = (cast_barrier(cast), TURNS) if cast else (load_barrier(place), LOADS)
                self._add(Barrier("try_wait", barrier, place // turns & 1))
                self._landed[order] = number + 1
                self.cycles = max(self.cycles, self._end("load", number))

    def _wait_for_cores(self, number):
        """The program waits until all cores have come to a meeting, if it does not know that they have."""
        while self._known["meet"] < number:
            self._known["meet"] += 1
            turn, place = divmod(self._known["meet"], len(MEETINGS))
            self._add(Barrier("try_wait", MEETINGS[place], turn & 1))
            self.cycles = max(self.cycles, self.together.all_met(self._known["meet"]))

    def _hold(self, state, store):
        """What follows in the access unit waits until a store has been read or written."""
        ends = self._ends["store" if state == "read" else "written"]
        newer = self._counts["store"] - 1 - store
        if store > self._behind[state] and newer < _GROUPS:
            self._add(Hold(newer, state == "read"))
            self._free["queue"] = max(self._free["queue"], ends[store])
        for known in ("read",) if state == "read" else ("read", "written"):
            self._behind[known] = max(self._behind[known], store)

    def _meet(self, step, loads, stores):
        self._wait_for_cores(step.number - 1)
        self._wait_for_loads(loads)
        self._hold("written", stores)
        barrier = MEETINGS[step.number % len(MEETINGS)]
        self._add(Barrier("expect_tx", barrier, BLOCK * self.together.cores))
        self._add(Barrier("arrive", barrier, 1))
        self._add(Signal(TOKEN, SCRATCH, barrier, self.together.everyone))
        self.together.meet(step.number, self.core, max(self.cycles, self._free["queue"]) + _SIGNAL_CYCLES)

    def _load(self, step, jobs, weights, calls, read, written, landed):
        number = self._counts["load"]
        if not isinstance(step, Fence):
            self._wait_for_cores(step.met)
        cast = cast_of(step)
        self._wait_for_loads(self._before(step))
        self._wait_for_loads(landed)
        issued = self._issued[cast and cast.group]
        issued.append(number)
        self._wait("conv", jobs)
        self._wait("weights", weights)
        self._wait("pe", calls)
        self._hold("written", written)
        self._hold("read", read)
        transfers = [Transfer(SCRATCH, BLOCK, self.source)] if isinstance(step, Fence) else step.transfers
        barrier = cast_barrier(cast) if cast else load_barrier(len(issued) - 1)
        self._add(Barrier("expect_tx", barrier, sum(transfer.size for transfer in transfers)))
        self._add(Barrier("arrive", barrier, 1))
        if cast and cast.cores[0] != self.core:
            self._add(Signal(TOKEN, SCRATCH, ready_barrier(cast), 1 << cast.cores[0]))
            self.together.free(cast, self.core, max(self.cycles, self._free["queue"]) + _SIGNAL_CYCLES)
            self._ends["load"].append(-1 - cast.number)
            return
        if cast:
            self._wait_for_room(cast)
        end = self._transfer("load", step.layer, transfers, barrier, cast.mask if cast else 0)
        self._ends["load"].append(end + self.machine.latency)
        if cast:
            self.together.bring(cast, end + self.machine.latency)

    def _wait_for_room(self, cast):
        """The program of the first core of a group waits until a multicast may write in all others."""
        barrier = ready_barrier(cast)
        self._add(Barrier("expect_tx", barrier, BLOCK * (len(cast.cores) - 1)))
        self._add(Barrier("arrive", barrier, 1))
        self._add(Barrier("try_wait", barrier, cast.turn // TURNS & 1))
        self.cycles = max(self.cycles, self.together.all_free(cast))

    def _conv(self, step, loads, calls):
        number = self._counts["conv"]
        self._wait("conv", number - JOBS)
        self._wait_for_loads(loads)
        self._wait("pe", calls)
        early, barrier = number in self._early, job_barrier(number)
        for fields in step.jobs[:-1]:
            self._add(Job(fields, step.layer, None, False))
        self._add(Job(step.jobs[-1], step.layer, barrier, early))
        self._phases.append(self._turns[number % JOBS])
        self._turns[number % JOBS] += early
        self.jobs[step.layer] += len(step.jobs)
        start = max(self.cycles + HANDED, self._free["conv"])
        self._free["conv"] = start + step.cycles
        self._ends["weights"].append(start + step.held)
        self.spans.append(Span("conv", step.layer, start, self._free["conv"]))
        self._beside(start, self._free["conv"])
        self._ends["conv"].append(self._free["conv"])

    def _pe(self, step, loads):
        self._wait_for_loads(loads)
        segments, entries, used = self._entries.of(step)
        self._wait("pe", used)
        for entry in entries:
            self._add(entry)
        self._load_kernel(step.code)
        arguments = (segments[each] if isinstance(each, Segment) else each for each in step.arguments)
        self._add(KernelCall(tuple(arguments), step.layer, step.entry))
        # The word ends when the engine has taken the call, after the kernel before.
        self.cycles = start = max(self.cycles, self._free["pe"])
        span = Span("pe", step.layer, start, start + step.cycles)
        waits = step.registers * ceil(self.machine.pe.threads / BANKS) / step.cycles
        self._called, self._free["pe"] = (span, waits), span.end
        self.spans.append(span)
        self._ends["pe"].append(span.end)
        self._beside(start, self._free["conv"])

    def _beside(self, start, end):
        """The last call takes longer because jobs run from ``start`` to ``end``: each of its accesses waits a cycle."""
        if not self._called:
            return
        span, waits = self._called
        both = min(end, span.end) - max(start, span.start)
        if both > 0:
            span.end += int(both * waits)
            self._free["pe"] = self._ends["pe"][-1] = span.end

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
        self._wait_for_cores(step.met)
        self._wait("conv", jobs)
        self._wait_for_loads(loads)
        self._wait("pe", calls)
        end = self._transfer("store", step.layer, step.transfers, None)
        self._ends["store"].append(end)
        self._ends["written"].append(end + self.machine.latency)

    def _transfer(self, kind, layer, transfers, barrier, cores=0):
        """The bus works in a direction for transfers; returns when it has ended."""
        for transfer in transfers:
            self._add(Command(transfer, layer, barrier, cores))
        if barrier is None:
            self._add(Commit())
        start, words = max(self.cycles, self._free[kind], self._free["queue"]), 0
        end = start
        for each in transfers:
            place = each.map and each.map.place
            if each.map and each.map.shared not in self._descriptors:
                self._descriptors.append(each.map.shared)
                self._free["queue"] = max(self.cycles, self._free["queue"]) + self.machine.latency + _FETCHED
            end = max(end, self._free["queue"]) + transfer_cycles(place, each.size, self.machine)
            words += moved(place, each.size, self.machine.bus_bytes)
        if self.together.ports:
            end = max(end, self.together.ports[kind].pass_words(start, words))
        self._free[kind] = end
        self.spans.append(Span(kind, layer, start, end, words, max(cores.bit_count(), 1)))
        return end
