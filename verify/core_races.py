"""Whether cores that run programs together could meet at a byte, however long each of them takes.

Each program is searched alone (``verify/races.py``). Beside that, a core may access what another one writes only if
meetings are between (docs/many_cores.md, "Meetings"): the other one has come to a meeting when its store was written,
or its load had landed, and this one has waited for the meeting. A multicast may write only where all cores of its group
have said that they are ready.
"""

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from tilewright.spec import BLOCK, COMMAND, BarrierOp, Opcode, Space
from tilewright.spec.cluster import DELIVERY
from tilewright.spec.core import WORD_BITS

from .races import Races

__all__ = ["find_core_races"]

#: Barriers in shared memory (docs/many_cores.md, "The host"), each kind in turn: of meetings, and for each group of
#: cores that has multicasts, of cores that are ready for them, and of the multicasts.
_MEETINGS, _GROUPS, _GROUP_BYTES, _TURNS = range(144, 160, 8), 160, 64, 4


def find_core_races(programs, memory, smem_bytes):
    """Pairs of accesses that may change their order, as texts: none in right programs.

    Parameters
    ----------
    programs : sequence of list of int
        Of the cores of a cluster, made together by the compiler of networks.
    memory : uint8 array
        Global memory from address 0 on, with descriptors.
    smem_bytes : int
        Of each core.
    """
    groups, cores = {}, []
    for core, words in enumerate(programs):
        cores.append(_CoreRaces(core, len(programs), groups, memory, smem_bytes))
        cores[-1].run(words)
    found = [f"core {core}, {text}" for core, each in enumerate(cores) for text in each.found]
    for number, group in groups.items():
        ready = {core: cores[core].ready[number] for core in range(len(cores)) if group.mask >> core & 1}
        if set(ready.values()) != {len(group.casts)}:
            found.append(f"{len(group.casts)} multicasts of group {number}, and cores are ready for {ready}")
    return found + list(_between(cores, len(memory)))


@dataclass
class _Group:
    """Cores with multicasts of their own: a mask, the core that issues them, and what each writes.

    Attributes
    ----------
    casts : list of list of (slice, int, int)
        Of each multicast the transfers: bytes of shared memory, how many, and the barrier.
    """

    mask: int
    core: int
    casts: list = field(default_factory=list)


class _CoreRaces(Races):
    """The search in the program of a core of a cluster.

    Parameters
    ----------
    core, cores : int
        Its number, and how many there are.
    groups : dict of int to _Group
        By number; the core that issues the multicasts of a group comes before the others, and adds it.
    """

    def __init__(self, core, cores, groups, memory, smem_bytes):
        received = [_cast(number) for number, group in groups.items() if group.mask >> core & 1]
        super().__init__(memory, smem_bytes, ("load", *received))
        self.core, self._cores, self._groups = core, cores, groups
        self.met, self.ready = 0, Counter()  # meetings waited for; multicasts of each group that there is room for
        self.arrivals = []  # of each meeting: the last store that is written, the last load that has landed
        self.accesses = []  # to global memory: word, kind, number, bytes, meetings before
        self._sent, self._open = 0, False  # cores of the last multicast, and whether more transfers of it follow

    def _barrier(self, index, operation, barrier, value, **fields):
        group, kind, turn = _part(barrier)
        if kind in ("meeting", "ready"):
            if operation == BarrierOp.TRY_WAIT:
                self._wait_for_cores(index, group, turn, value)
            return
        super()._barrier(index, operation, barrier, value, **fields)

    def _wait_for_cores(self, index, group, turn, value):
        """The program waits for a meeting, or until a group is ready for a multicast: each in turn."""
        count, turns = (self.met, len(_MEETINGS)) if group is None else (self.ready[group], _TURNS)
        if (turn, value) != (count % turns, count // turns & 1):
            self.found.append(f"word {index}: a wait that is not for number {count}")
        if group is not None:
            self.ready[group] += 1
            return
        if count >= len(self.arrivals):
            self.found.append(f"word {index}: a wait for a meeting that the core has not come to")
        self.met += 1

    def _command(self, index, word):
        delivery = DELIVERY.unpack(word & (1 << WORD_BITS) - 1)
        if not delivery["multicast"]:
            super()._command(index, word)
            return
        fields = BLOCK.unpack(word)
        if COMMAND.unpack(word)["opcode"] != Opcode.COPY_BLOCK or fields["source_space"] != Space.SHARED:
            self._sent = delivery["cores"]
            super()._command(index, word)
            return
        group, kind, turn = _part(fields["barrier"])
        if kind == "meeting" and delivery["cores"] == (1 << self._cores) - 1:
            if len(self.arrivals) != self.met:
                self.found.append(f"word {index}: the core comes to a meeting before it has waited for the one before")
            self.arrivals.append((self.held["written"], self.known["load"]))
        elif kind == "ready":
            self._get_ready(index, group, turn, delivery["cores"])
        else:
            self.found.append(f"word {index}: a signal that nobody waits for")

    def _get_ready(self, index, number, turn, cores):
        """The core says to ``cores`` that it is ready for the next multicast of a group."""
        group, count = self._groups.get(number), self.ready[number]
        self.ready[number] += 1
        if group is None or count >= len(group.casts) or not group.mask >> self.core & 1:
            self.found.append(f"word {index}: the core is ready for a multicast that never comes")
            return
        if (cores, turn) != (1 << group.core, count % _TURNS):
            self.found.append(f"word {index}: the core that issues multicasts of group {number} does not hear of it")
        for near, size, barrier in group.casts[count]:
            self._load(index, near, None, size, barrier, _cast(number))

    def _load(self, index, near, far, size, barrier, kind="load"):
        number, part, turn = _part(barrier)
        if kind == "load" and part == "multicast":
            group = self._groups.setdefault(number, _Group(self._sent, self.core))
            if not self._open:
                group.casts.append([])
                if (self.ready[number], turn) != (len(group.casts), (len(group.casts) - 1) % _TURNS):
                    self.found.append(f"word {index}: a multicast for which not all cores are ready")
            if (group.mask, group.core) != (self._sent, self.core):
                self.found.append(f"word {index}: a multicast to other cores than those of group {number}")
            group.casts[-1].append((near, size, barrier))
        super()._load(index, near, far, size, barrier, kind)
        if kind == "load":
            if part == "multicast":
                self._open = self.expected[barrier] != 0
            self.accesses.append((index, "load", self.count["load"] - 1, far, self.met))

    def _store(self, index, near, far):
        super()._store(index, near, far)
        self.accesses.append((index, "store", self.count["store"] - 1, far, self.met))

    def told(self, kind, number):
        """The first meeting to which the core came when a store was written, or a load had landed."""
        place = 0 if kind == "store" else 1
        return bisect_left(self.arrivals, number, key=lambda arrival: arrival[place])


def _cast(number):
    """The kind of loads that another core issues for a group: they land in order."""
    return f"multicast {number}"


def _part(barrier):
    """The group of a barrier, what it counts, and its turn."""
    if barrier in _MEETINGS:
        return None, "meeting", _MEETINGS.index(barrier)
    if barrier is None or barrier < _GROUPS:
        return None, None, 0
    number, place = divmod(barrier - _GROUPS, _GROUP_BYTES)
    turn = place // 8
    return number, "ready" if turn < _TURNS else "multicast", turn % _TURNS


def _between(cores, size):
    """Pairs of accesses of two cores, of which one writes, without a meeting between."""
    last = {(core, kind): np.full(size, -1, np.int32) for core in range(len(cores)) for kind in ("load", "store")}
    accesses = [(met, core, *access) for core, each in enumerate(cores) for *access, met in each.accesses]
    for met, core, index, kind, number, place in sorted(accesses, key=lambda access: access[0]):
        for other in range(len(cores)):
            for theirs in ("load", "store") if kind == "store" else ("store",):
                if other != core and (last[other, theirs][place] >= met).any():
                    yield f"core {core}, word {index}: a {kind} may meet a {theirs} of core {other}"
        told = cores[core].told(kind, number)
        last[core, kind][place] = np.maximum(last[core, kind][place], told)
