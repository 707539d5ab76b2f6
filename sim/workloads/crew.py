"""The cores of a cluster at work: loads and stores of all of them side by side, all memories compared with golden."""

from dataclasses import replace

import numpy as np

from tilewright.golden import Cluster, Memory, TensorMap, command_word, delivery_bits, limits
from tilewright.golden.memory import memory_bytes
from tilewright.golden.patterns import mix_pattern
from tilewright.golden.spec import LINE_BYTES, BarrierOp, Opcode
from tilewright.golden.tmau.calls import tensor_fields
from tilewright.golden.tmau.tile import extent, footprint, tx_bytes

from ..report.activity import Activity
from .findings import Totals

__all__ = ["Crew"]

_BARRIER = 0  # address of the barrier of every core, in a line of its own


class Crew:
    """Moves boxes on all cores at once, as many at a time as fit in each shared memory beside what was brought.

    Every run begins with a pattern in the free part of every shared memory; after it all bytes of all of them must
    equal those of a golden cluster that was given the same commands, and no command may have ended with an error.

    Parameters
    ----------
    session : ClusterSession
        Of access units alone, or of cores.
    progress : callable
        Called with the number of boxes that have been compared.

    Attributes
    ----------
    cores : int
    totals : Totals
    """

    def __init__(self, session, progress=lambda boxes: None):
        session.clear()
        self._session, self._progress = session, progress
        self._tmau, self.cores = session.params.tmau, session.params.cores
        self._size = session.params.smem.size_bytes
        self._gmem = Memory(session.memory_bytes)
        self._smems = [np.zeros(self._size, np.uint8) for _ in range(self.cores)]
        self._golden = Cluster(
            self._gmem, self._smems, bus_bytes=self._tmau.bus_bytes, addr_width=self._tmau.addr_width
        )
        self._first = LINE_BYTES  # of shared memory that is free
        self._brought = None
        self._words = {}
        self._begun = 0
        self._spans = [{"loads": [], "stores": []} for _ in range(self.cores)]
        self._marks = []
        self.totals = Totals()

    def fit(self, brought, row_bytes, most):
        """How many rows a box can have, a power of two up to ``most``, so that two fit beside what is to be brought."""
        free = self._size - LINE_BYTES - _lines(brought)
        while most > 1 and 2 * _lines(most * row_bytes) > free:
            most //= 2
        return most

    def tiled(self, array, **options):
        """A map of ``array``, which is placed in global memory; options are those of ``TensorMap.tiled``."""
        contents = memory_bytes(array)
        address = self._session.place(contents)
        self._gmem.write(address, contents)
        return replace(TensorMap.tiled(array, **options), address=address, array=None)

    def bring(self, tmap):
        """Core 0 loads the whole of a tensor, by one box, into all shared memories, where it stays."""
        self._brought = slice(self._first, self._first + tx_bytes(tmap))
        start = (0,) * tmap.rank
        load = (tmap, start, self._first, (0, 0, 0), list(range(self.cores)))
        run = self._load([[load]] + [[]] * (self.cores - 1), "bank")
        words = limits(tmap, start, self._tmau.bus_bytes, self._first, self._tmau.addr_width).words
        self.totals.require([run.data_beats], [words], "bus words that the multicast read")
        self._words["bank"] = run.data_beats
        self._first += _lines(footprint(tmap))

    def brought(self, core):
        """The bytes of :meth:`bring` in the shared memory of a core, as the hardware left them."""
        return self._shared[core][self._brought]

    def load(self, tmap, boxes):
        """Loads the boxes of each core; yields its number, the box and its bytes, an array of rows as wide as a pixel.

        Parameters
        ----------
        tmap : TensorMap
            Of an im2col map without swizzle.
        boxes : list of lists of (coords, offsets)
            Of each core.
        """
        slot = _lines(footprint(tmap))
        places = range(self._first, self._size - slot + 1, slot)
        for number in range(0, max(map(len, boxes)), len(places)):
            turn = [listed[number : number + len(places)] for listed in boxes]
            loads = [
                [(tmap, coords, place, offsets, None) for (coords, offsets), place in zip(listed, places, strict=False)]
                for listed in turn
            ]
            self._load(loads, "loads")
            for core, listed in enumerate(turn):
                for box, place in zip(listed, places, strict=False):
                    rows = self._shared[core][place : place + tx_bytes(tmap)].reshape(tmap.pixels, -1)
                    yield core, box, rows

    def store(self, tmap, boxes):
        """Stores boxes of a tensor, whose bytes are put into the shared memory of each core before.

        Parameters
        ----------
        tmap : TensorMap
        boxes : list of lists of (coords, uint8 array)
            Of each core.
        """
        slot = _lines(footprint(tmap))
        places = range(self._first, self._size - slot + 1, slot)
        for number in range(0, max(map(len, boxes)), len(places)):
            turn = [listed[number : number + len(places)] for listed in boxes]
            self._fill()
            for core, listed in enumerate(turn):
                for (_, contents), place in zip(listed, places, strict=False):
                    self._smems[core][place : place + contents.size] = contents.reshape(-1)
            stores = [
                [(tmap, coords, place, (0, 0, 0), None) for (coords, _), place in zip(listed, places, strict=False)]
                for listed in turn
            ]
            self._run(stores, "stores", Opcode.STORE)

    def stored(self, tmap):
        """All bytes of a tensor in global memory, compared with golden."""
        seen = self._session.global_memory.read(tmap.address, extent(tmap))
        self.totals.require(seen, self._gmem.read(tmap.address, extent(tmap)), "global memory")
        return seen

    def facts(self):
        """Sentences on who read and moved how much."""
        brought = self._brought.stop - self._brought.start
        yield (f"the bank: {brought:,} bytes, {self._words['bank']} bus words of {self._tmau.bus_bytes} bytes read "
               f"once, {self.cores * brought:,} bytes delivered to {self.cores} cores")  # fmt: skip
        busy = [sum(last - first for first, last in spans["loads"]) for spans in self._spans]
        yield f"cycles in which loads of each core were under way: {', '.join(f'{cycles:,}' for cycles in busy)}"

    def activity(self):
        """Which core moved bytes when, over all runs one behind the other."""
        rows = {f"core {core}, {way}": spans for core, ways in enumerate(self._spans) for way, spans in ways.items()}
        return Activity("A photograph on several cores", 0, self._begun, rows, self._marks)

    def _fill(self):
        """A pattern in what is free, and a barrier that waits for one arrival."""
        pattern = mix_pattern(self._size - self._first, self.totals.parts)
        for core, smem in enumerate(self._smems):
            smem[self._first :] = pattern
            self._golden.barrier(core, BarrierOp.INIT, _BARRIER, 1)

    def _load(self, loads, kind):
        self._fill()
        return self._run(loads, kind, Opcode.LOAD)

    def _run(self, moves, kind, opcode):
        """Runs loads, which signal the barriers of all that receive them, or stores of every core, and compares."""
        session, totals = self._session, self.totals
        for held, smem in zip(session.shared_memories, self._smems, strict=True):
            held.write(0, smem)
        signals = {"signal": 1, "barrier": _BARRIER} if opcode == Opcode.LOAD else {}
        landing = [0] * self.cores
        commands = []
        for core, listed in enumerate(moves):
            commands.append([])
            for tmap, coords, place, offsets, cores in listed:
                more = {} if cores is None else {"cores": cores}
                commands[-1].append(session.command(tmap, coords, place, offsets, opcode=opcode, **signals, **more))
                for receiver in cores or [core]:
                    landing[receiver] += tx_bytes(tmap)
        operations = self._expect(landing) if signals else [[]] * self.cores
        for core, listed in enumerate(moves):
            for tmap, coords, place, offsets, cores in listed:
                word = command_word(**{"opcode": opcode} | tensor_fields(tmap, coords, place, offsets) | signals)
                self._golden.execute_on(core, int.from_bytes(tmap.pack(), "little"), word | delivery_bits(cores))
        waits = [[(BarrierOp.TRY_WAIT, _BARRIER, 0, True)] if landed and signals else [] for landed in landing]
        barriers = [[*each, *wait] for each, wait in zip(operations, waits, strict=True)]
        run = session.run(commands, barriers=barriers, shared=True)
        where = f"after {totals.parts} boxes"
        self._shared = [core.shared for core in run.cores]
        for number, (core, smem) in enumerate(zip(run.cores, self._smems, strict=True)):
            totals.require(core.shared, smem, f"shared memory of core {number} {where}")
            totals.require([stamp.error for stamp in core.commands], [0] * len(moves[number]), f"error codes {where}")
        for rule in (*run.violations, *run.late):
            totals.problems.append(f"the bus broke {rule.name} {where}")
        self._count(moves, run, kind)
        self._progress(totals.parts)
        return run

    def _expect(self, landing):
        """Operations with which each core awaits its bytes, made on golden too."""
        operations = [
            [(BarrierOp.EXPECT_TX, _BARRIER, landed), (BarrierOp.ARRIVE, _BARRIER, 1)] if landed else []
            for landed in landing
        ]
        for core, listed in enumerate(operations):
            for op, address, value in listed:
                self._golden.barrier(core, op, address, value)
        return operations

    def _count(self, moves, run, kind):
        totals, tmau = self.totals, self._tmau
        least = [
            [
                limits(tmap, coords, tmau.bus_bytes, place, tmau.addr_width, offsets)
                for tmap, coords, place, offsets, _ in m
            ]
            for m in moves
        ]
        stamps = [stamp for core in run.cores for stamp in core.commands]
        first, last = min(stamp.accepted for stamp in stamps), max(stamp.done for stamp in stamps)
        totals.parts += len(stamps)
        totals.work += sum(tx_bytes(tmap) * len(cores or [0]) for listed in moves for tmap, *_, cores in listed)
        totals.cycles += last - first
        words = sum(each.words for listed in least for each in listed)
        totals.limit += max(words, *(sum(each.lines for each in listed) for listed in least))
        for spans, core in zip(self._spans, run.cores, strict=True):
            if core.commands:
                start, end = core.commands[0].accepted, max(stamp.done for stamp in core.commands)
                way = "stores" if kind == "stores" else "loads"
                spans[way].append((self._begun + start - first, self._begun + end - first))
        self._marks.append((self._begun, self._begun + last - first, kind))
        self._begun += last - first


def _lines(count):
    """Bytes of whole lines that hold so many bytes."""
    return -(-count // LINE_BYTES) * LINE_BYTES
