"""Whether engines that a program starts could meet at a byte, however long each of them takes.

A program that is right when its words are carried out one after the other is right in hardware if no two accesses to a
byte, of which one writes, can change their order. What keeps an order: jobs, transfers to shared memory and transfers
to global memory each end in order, and so do calls of kernels; the program waits for barriers, and for the processing
engine; waits of the access unit hold up what follows. A job that tells that its weights have been read tells that the
jobs before it have ended.
"""

import numpy as np

from tilewright.golden import TensorMap, tx_bytes
from tilewright.golden.conv.job import barriers_of, parts_of
from tilewright.golden.tmau.tile import coordinates, walk
from tilewright.spec import BLOCK, COMMAND, DESCRIPTOR, GROUP, BarrierOp, Opcode, Space
from tilewright.spec.conv import JOB, ConvOperation
from tilewright.spec.core import PROGRAM_WORDS, WORD_BITS, Engine, Kind

from .kernel_accesses import KernelAccesses

__all__ = ["Races", "find_races"]

_GROUPS = 16


class _Memory:
    """The last step of each engine that read and that wrote each byte."""

    def __init__(self, size, *accesses):
        self.last = {access: np.full(size, -1, np.int32) for access in accesses}

    def check(self, place, known):
        """Accesses to ``place`` that have not ended for sure, of those in ``known`` by the last step that has."""
        return [access for access, end in known.items() if (self.last[access][place] > end).any()]

    def touch(self, place, access, number):
        self.last[access][place] = number


def find_races(words, memory, smem_bytes):
    """Pairs of accesses that may change their order, as texts: none in a right program.

    Parameters
    ----------
    words : list of int
        Without loops; a barrier is used by loads, each phase an EXPECT_TX, an ARRIVE and the loads, or by jobs, each
        phase one arrival.
    memory : uint8 array
        Global memory from address 0 on, with descriptors.
    smem_bytes : int
    """
    return Races(memory, smem_bytes).run(words)


class Races:
    """The search in the program of a core: ``found`` holds what it has found."""

    def __init__(self, memory, smem_bytes, loads=("load",)):
        self.memory = memory
        engines = "job reads", "job weights", "job writes", "kernel reads", "kernel writes"
        self.smem = _Memory(smem_bytes, *loads, *engines, "store")
        self.gmem = _Memory(len(memory), "load", "store")
        self.kernels = KernelAccesses(memory)
        self.loads = loads
        self.count = dict.fromkeys((*loads, "job", "kernel", "store"), 0)
        # What the program knows to have ended; of stores, and of weights of jobs: to have been read.
        self.known = dict.fromkeys((*loads, "job", "weights", "kernel", "store"), -1)
        self.held = {"read": -1, "written": -1}  # stores that what follows in the access unit is behind
        self.behind = []  # of each load: stores that have been read when it lands
        self.barriers, self.expected = {}, {}
        self.found = []

    def run(self, words):
        words = iter(words)
        for index, word in enumerate(words):
            fields = PROGRAM_WORDS[Kind(word >> WORD_BITS - 4)]
            kind, values = Kind(word >> WORD_BITS - 4), fields.unpack(word)
            if kind == Kind.BARRIER:
                self._barrier(index, **values)
            elif kind == Kind.TMAU:
                self._command(index, word & (1 << WORD_BITS - 4) - 1)
            elif kind == Kind.CONV:
                self._job(index, next(words) | next(words) << WORD_BITS)
            elif kind == Kind.REGISTER:
                self.kernels.register(values["offset"], values["value"])
            elif kind == Kind.PE:
                self.kernels.instructions(values["address"], values["count"])
            elif kind == Kind.KERNEL:
                self._kernel(index, word)
            elif kind == Kind.WAIT_ALL and values["engines"] & 1 << Engine.PE - 1:
                self.known["kernel"] = self.count["kernel"] - 1
        return self.found

    def _report(self, index, what, others):
        self.found += [f"word {index}: {what} may meet an earlier {other}" for other in others]

    def _barrier(self, index, operation, barrier, value, **_):
        if operation == BarrierOp.EXPECT_TX:
            self.expected[barrier] = value
        if operation != BarrierOp.TRY_WAIT:
            return
        phases = self.barriers.get(barrier, [])
        number = len(phases) - 1
        if self.expected.get(barrier):
            self.found.append(f"word {index}: a wait for bytes that nobody brings")
        if number & 1 != value:
            number -= 1  # the phase before the last one
        kind, step = phases[number]
        self._end(kind, step)
        if kind == "load":
            self.known["store"] = max(self.known["store"], *self.behind[: step + 1])

    def _end(self, kind, step):
        """The program knows that a step of a kind has ended, and what has ended with it."""
        self.known[kind] = max(self.known[kind], step)
        if kind == "job":
            self._end("weights", step)
        elif kind == "weights":
            self.known["job"] = max(self.known["job"], step - 1)

    def _landed(self):
        """The last loads that have landed, of each kind."""
        return {kind: self.known[kind] for kind in self.loads}

    def _job(self, index, job):
        fields = JOB.unpack(job)
        parts = parts_of(fields)
        number = self.count["job"]
        for name, part in parts.items():
            place = slice(part.address, part.end)
            if name == "y":
                known = self._landed() | dict.fromkeys(("kernel reads", "kernel writes"), self.known["kernel"])
                known["store"] = self.known["store"]
                self._report(index, "results of a job", self.smem.check(place, known))
                self.smem.touch(place, "job writes", number)
            elif name != "barrier":
                known = self._landed() | {"kernel writes": self.known["kernel"]}
                self._report(index, f"{name} of a job", self.smem.check(place, known))
                weights = name == "k" and fields["operation"] == ConvOperation.CONVOLUTION
                self.smem.touch(place, "job weights" if weights else "job reads", number)
        for barrier, kind in zip(barriers_of(fields), ("job", "weights"), strict=False):
            phases = self.barriers.setdefault(barrier, [])
            if phases and phases[-1][1] > self.known[kind]:
                self.found.append(f"word {index}: a second arrival before the first was waited for")
            phases.append((kind, number))
        self.count["job"] += 1

    def _kernel(self, index, word):
        number, known = self.count["kernel"], self.known
        earlier = self._landed() | {"job writes": known["job"]}
        others = {"job reads": known["job"], "job weights": known["weights"], "store": known["store"]}
        for name, places in zip(("reads", "writes"), self.kernels.call(word), strict=True):
            for place in places:
                limits = earlier | others if name == "writes" else earlier
                self._report(index, f"what a kernel {name}", self.smem.check(place, limits))
                self.smem.touch(place, f"kernel {name}", number)
        self.count["kernel"] += 1

    def _command(self, index, word):
        opcode = COMMAND.unpack(word)["opcode"]
        if opcode == Opcode.WAIT:
            fields = GROUP.unpack(word)
            last = self.count["store"] - 1 - fields["count"]
            for state in ("read",) if fields["read"] else ("read", "written"):
                self.held[state] = max(self.held[state], last)
        elif opcode != Opcode.COMMIT:
            # More groups than that are not unfinished.
            for state in self.held:
                self.held[state] = max(self.held[state], self.count["store"] - 1 - _GROUPS)
            self._transfer(index, word, opcode)

    def _transfer(self, index, word, opcode):
        if opcode == Opcode.COPY_BLOCK:
            fields = BLOCK.unpack(word)
            load, size = fields["source_space"] == Space.GLOBAL, fields["size"]
            near, far = (fields["destination"], fields["source"])[:: 1 if load else -1]
            near, far = slice(near, near + size), slice(far, far + size)
        else:
            fields, load = COMMAND.unpack(word), opcode == Opcode.LOAD
            start = fields["descriptor"]
            tensor = TensorMap.unpack(self.memory[start : start + DESCRIPTOR.bytes].tobytes())
            tile = walk(tensor, coordinates(tensor, fields["coords"][: tensor.rank]), 64, fields["offsets"])
            size, far = tx_bytes(tensor), np.asarray(tile.global_bytes()).ravel()
            near = slice(fields["smem"], fields["smem"] + size)
        if load:
            self._load(index, near, far, size, fields["barrier"])
        else:
            self._store(index, near, far)

    def _load(self, index, near, far, size, barrier, kind="load"):
        """A load, or a multicast of another core, of another kind, which has no ``far``."""
        number = self.count[kind]
        known = {"job reads": self.known["job"], "job weights": self.known["weights"], "job writes": self.known["job"],
                 "kernel reads": self.known["kernel"], "kernel writes": self.known["kernel"],
                 "store": max(self.held["read"], self.known["store"])}  # fmt: skip
        known |= {other: end for other, end in self._landed().items() if other != kind}  # one core's loads are in order
        self._report(index, "destination of a load", self.smem.check(near, known))
        self.smem.touch(near, kind, number)
        if kind == "load":
            self._report(index, "source of a load", self.gmem.check(far, {"store": self.held["written"]}))
            self.gmem.touch(far, kind, number)
            self.behind.append(max(self.held["read"], self.behind[-1] if self.behind else -1))
        self.expected[barrier] -= size
        if self.expected[barrier] == 0:
            phases = self.barriers.setdefault(barrier, [])
            if phases and phases[-1][1] > self.known[kind]:
                self.found.append(f"word {index}: a second phase before the first was waited for")
            phases.append((kind, number))
        self.count[kind] += 1

    def _store(self, index, near, far):
        number = self.count["store"]
        known = self._landed() | {"job writes": self.known["job"], "kernel writes": self.known["kernel"]}
        self._report(index, "source of a store", self.smem.check(near, known))
        self._report(index, "destination of a store", self.gmem.check(far, {"load": self.known["load"]}))
        self.smem.touch(near, "store", number)
        self.gmem.touch(far, "store", number)
        self.count["store"] += 1
