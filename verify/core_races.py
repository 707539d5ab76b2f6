"""Whether cores that run programs together could meet at a byte, however long each of them takes.

Each program is searched alone (``verify/races.py``). Beside that, a core may access what another one writes only if
meetings are between (docs/many_cores.md, "Meetings"): the other one has come to a meeting when its store was written,
or its load had landed, and this one has waited for the meeting. A multicast may write only where all cores have said
that they are ready.
"""

from bisect import bisect_left

import numpy as np

from tilewright.spec import BLOCK, COMMAND, BarrierOp, Opcode, Space
from tilewright.spec.cluster import DELIVERY
from tilewright.spec.core import WORD_BITS

from .races import Races

__all__ = ["find_core_races"]

#: Barriers in shared memory (docs/many_cores.md, "The host"), each kind in turn: of meetings, of cores that are ready
#: for multicasts, and of multicasts.
_MEETINGS, _READY, _BROUGHT = range(128, 144, 8), range(144, 176, 8), range(176, 208, 8)


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
    casts, cores = [], []
    for core, words in enumerate(programs):
        cores.append(_CoreRaces(core, len(programs), casts, memory, smem_bytes))
        cores[-1].run(words)
    found = [f"core {core}, {text}" for core, each in enumerate(cores) for text in each.found]
    if any(each.ready != len(casts) for each in cores):
        found.append(f"{len(casts)} multicasts, and cores are ready for {[each.ready for each in cores]}")
    return found + list(_between(cores, len(memory)))


class _CoreRaces(Races):
    """The search in the program of a core of a cluster.

    Parameters
    ----------
    core, cores : int
        Its number, and how many there are.
    casts : list of list of (slice, int, int)
        Of each multicast what it writes, its bytes and its barrier; the first core adds them.
    """

    def __init__(self, core, cores, casts, memory, smem_bytes):
        super().__init__(memory, smem_bytes)
        self.core, self._cores, self._casts = core, cores, casts
        self.met = self.ready = 0  # meetings that the core has waited for; multicasts it, or all cores, are ready for
        self.arrivals = []  # of each meeting: the last store that is written, the last load that has landed
        self.accesses = []  # to global memory: word, kind, number, bytes, meetings before
        self._open = False  # a multicast of which more transfers follow

    def _barrier(self, index, operation, barrier, value, **fields):
        if barrier in _MEETINGS or barrier in _READY:
            if operation == BarrierOp.TRY_WAIT:
                self._wait_for_cores(index, barrier, value)
            return
        super()._barrier(index, operation, barrier, value, **fields)

    def _wait_for_cores(self, index, barrier, value):
        """The program waits for a meeting, or until all cores are ready for a multicast: each in turn."""
        of_meeting = barrier in _MEETINGS
        places, count = (_MEETINGS, self.met) if of_meeting else (_READY, self.ready)
        turn, place = divmod(count, len(places))
        if (barrier, value) != (places[place], turn & 1):
            self.found.append(f"word {index}: a wait that is not for number {count}")
        if of_meeting and count >= len(self.arrivals):
            self.found.append(f"word {index}: a wait for a meeting that the core has not come to")
        self.met, self.ready = (count + 1, self.ready) if of_meeting else (self.met, count + 1)

    def _command(self, index, word):
        delivery = DELIVERY.unpack(word & (1 << WORD_BITS) - 1)
        if not delivery["multicast"]:
            super()._command(index, word)
            return
        fields = BLOCK.unpack(word)
        signal = COMMAND.unpack(word)["opcode"] == Opcode.COPY_BLOCK and fields["source_space"] == Space.SHARED
        if signal and delivery["cores"] == (1 << self._cores) - 1:
            if len(self.arrivals) != self.met:
                self.found.append(f"word {index}: the core comes to a meeting before it has waited for the one before")
            landed = self.known["load"]
            self.arrivals.append((self.held["written"], landed))
        elif signal:
            if self.ready >= len(self._casts):
                self.found.append(f"word {index}: the core is ready for a multicast that never comes")
            else:
                for near, size, barrier in self._casts[self.ready]:
                    self._load(index, near, None, size, barrier, "cast")
            self.ready += 1
        else:
            self._cast(index, word)

    def _cast(self, index, word):
        """A transfer of a multicast of the first core."""
        if not self._open:
            self._casts.append([])
            if self.ready != len(self._casts):
                self.found.append(f"word {index}: a multicast for which not all cores are ready")
        super()._command(index, word)

    def _load(self, index, near, far, size, barrier, kind="load"):
        casting = kind == "load" and barrier in _BROUGHT
        super()._load(index, near, far, size, barrier, kind)
        if casting:
            self._casts[-1].append((near, size, barrier))
            self._open = self.expected[barrier] != 0
        if kind == "load":
            self.accesses.append((index, "load", self.count["load"] - 1, far, self.met))

    def _store(self, index, near, far):
        super()._store(index, near, far)
        self.accesses.append((index, "store", self.count["store"] - 1, far, self.met))

    def told(self, kind, number):
        """The first meeting to which the core came when a store was written, or a load had landed."""
        place = 0 if kind == "store" else 1
        return bisect_left(self.arrivals, number, key=lambda arrival: arrival[place])


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
