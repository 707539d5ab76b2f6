"""Moves boxes through the RTL, as many at a time as fit in shared memory, and compares every byte of it with golden."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from tilewright.errors import UsageError
from tilewright.golden import Memory, TensorMap, limits, load
from tilewright.golden.memory import memory_bytes, mix_pattern
from tilewright.golden.smem import Barrier
from tilewright.golden.tmau.tile import extent, footprint, row_bytes, tx_bytes
from tilewright.spec import BANKS, BARRIER, CHUNK_BYTES, LINE_BYTES, BarrierOp, Opcode

from ..session.run import Run
from .findings import Totals, Worker

__all__ = ["Batch", "Box", "Mover"]

_BARRIER = 0  # address of the barrier of every batch, which has a line of its own


class Box(NamedTuple):
    """One load: a map from :meth:`Mover.tiled`, the start of the box, and for im2col the offsets of the tap."""

    tmap: TensorMap
    coords: tuple
    offsets: tuple = ()


@dataclass(frozen=True)
class Batch:
    """Boxes that have landed and have been compared.

    Attributes
    ----------
    boxes : list of (Box, int)
        With their addresses in shared memory.
    shared : uint8 array
        All of shared memory after the run on the hardware.
    run : Run
        With the answers to the consumer's reads, in the order of the boxes.
    """

    boxes: list
    shared: np.ndarray
    run: Run

    def rows(self, tmap, address):
        """The bytes of a box without swizzle, one row (dimension 0, or a pixel) after the other."""
        row = row_bytes(tmap)
        return self.shared[address : address + footprint(tmap)].reshape(-1, row)


class Mover(Worker):
    """Moves boxes in batches: as many as fit in shared memory side by side, issued back to back.

    Before a batch all of shared memory is written with a pattern, and a line between boxes must keep it. The boxes of a
    batch signal one barrier, on which a processor waits before the consumer reads. After the batch all of shared memory
    must equal the golden model's.

    Parameters and attributes are those of a ``Worker``, whose session is of a core with an access unit alone.
    """

    UNIT = "bytes"

    def __init__(self, session, **options):
        super().__init__(session, **options)
        session.clear()
        self._params = session.params.tmau
        self._gmem = Memory(session.memory_bytes)
        self._placed = {}

    def tiled(self, array, **options):
        """A map of ``array``, which is placed in global memory once; options are those of ``TensorMap.tiled``."""
        return replace(TensorMap.tiled(array, **options), address=self._address(array), array=None)

    def sliced(self, array, **options):
        """A map with interleave: ``array`` has bytes, in the shape N × slices of C × H × W × bytes of a slice."""
        size, stride = array.shape[-2::-1], array.strides[-3::-1]
        return TensorMap(element="u8", size=size, stride=stride, address=self._address(array), **options)

    def _address(self, array):
        if id(array) not in self._placed:
            contents = memory_bytes(array)
            address = self.session.place(contents)
            self._gmem.write(address, contents)
            # A reference to the array is kept, so that no other array gets the same id.
            self._placed[id(array)] = array, address
        return self._placed[id(array)][1]

    def move(self, boxes, reads=lambda box, address: ()):
        """Moves boxes and yields each :class:`Batch`.

        Parameters
        ----------
        boxes : sequence of Box
        reads : callable
            Returns the consumer's reads of a box at an address: each is a list of eight byte addresses.
        """
        for placed in self._batches(boxes):
            yield self._move(placed, [lanes for box, address in placed for lanes in reads(box, address)])

    def store_back(self, source, starts):
        """Moves boxes of ``source`` to shared memory and from there to a copy of the tensor; returns the copy's bytes.

        Parameters
        ----------
        source : TensorMap
            From :meth:`tiled`.
        starts : sequence of tuple of int
            Starts of the boxes; together the boxes should cover the tensor.
        """
        session = self.session
        length = extent(source)
        target = replace(source, address=session.place(mix_pattern(length, self.totals.parts)))
        for placed in self._batches([Box(source, start) for start in starts]):
            loads = [session.command(source, box.coords, address) for box, address in placed]
            stores = [
                session.command(target, box.coords, address, opcode=Opcode.STORE, wait=not number)
                for number, (box, address) in enumerate(placed)
            ]
            run = session.run([*loads, *stores])
            self.totals.require([stamp.error for stamp in run.commands], [0] * 2 * len(placed), "error codes")
            for rule in (*run.violations, *run.late):
                self.totals.problems.append(f"the bus broke {rule.name}")
            self._count(placed, run, ways=2)
        return session.global_memory.read(target.address, length)

    def _batches(self, boxes):
        """Lists of boxes and their addresses, as many as fit."""
        placed, free = [], LINE_BYTES
        for box in boxes:
            size = -(-footprint(box.tmap) // LINE_BYTES) * LINE_BYTES
            capacity = self._params.smem.size_bytes
            if size > capacity - LINE_BYTES:
                raise UsageError(f"a box of {size} bytes and a barrier do not fit in {capacity} of shared memory")
            if free + size > capacity:
                yield placed
                placed, free = [], LINE_BYTES
            placed.append((box, free))
            free += size + LINE_BYTES
        if placed:
            yield placed

    def _move(self, placed, reads):
        session = self.session
        before = mix_pattern(self._params.smem.size_bytes, self.totals.parts)
        before[: BARRIER.bytes] = _barrier(phase=0)
        session.shared_memory.write(0, before)
        commands = [
            session.command(box.tmap, box.coords, address, barrier=_BARRIER, offsets=box.offsets)
            for box, address in placed
        ]
        operations = [
            (BarrierOp.EXPECT_TX, _BARRIER, sum(tx_bytes(box.tmap) for box, _ in placed)),
            (BarrierOp.ARRIVE, _BARRIER, 1),
            (BarrierOp.TRY_WAIT, _BARRIER, 0, True),
        ]
        run = session.run(commands, barriers=operations, reads=reads, after={"reads": ["barriers"]}, shared=True)

        wanted = before.copy()
        for box, address in placed:
            load(box.tmap, box.coords, self._gmem, wanted, address, box.offsets)
        # The phase is complete, and the next one begins.
        wanted[: BARRIER.bytes] = _barrier(phase=1)
        self._compare(wanted, run, reads)
        self._count(placed, run)
        return Batch(placed, run.shared, run)

    def _compare(self, wanted, run, reads):
        totals = self.totals
        where = f"after {totals.parts} boxes"
        totals.require(run.shared, wanted, f"shared memory {where}")
        chunks = np.array(reads, np.intp).reshape(-1, BANKS) // CHUNK_BYTES
        totals.require(run.reads, wanted.reshape(-1, CHUNK_BYTES)[chunks], f"consumer reads {where}")
        totals.require([address for _, address in run.flips], [_BARRIER], f"barriers that flipped {where}")
        totals.require([stamp.error for stamp in run.commands], [0] * len(run.commands), f"error codes {where}")
        for rule in (*run.violations, *run.late):
            totals.problems.append(f"the bus broke {rule.name} {where}")

    def _count(self, placed, run, ways=1):
        """Adds to the totals. Boxes that were also stored count in both directions, but not in steady state."""
        done, params = [stamp.done for stamp in run.commands], self._params
        least = [
            limits(box.tmap, box.coords, params.bus_bytes, address, params.addr_width, box.offsets)
            for box, address in placed
        ]
        work = ways * sum(tx_bytes(box.tmap) for box, _ in placed)
        one = Totals(self.UNIT, ways * len(placed), work, run.span, ways * _limit(least))
        if ways == 1:
            one.steady_cycles, one.steady_limit = max(done) - done[0], _limit(least[1:])
        self.count(one)


def _barrier(phase):
    """Bytes of a barrier that waits for one arrival."""
    word = Barrier(pending=1, expected=1, phase=phase).pack()
    return np.frombuffer(word.to_bytes(BARRIER.bytes, "little"), np.uint8)


def _limit(least):
    """The fewest cycles: each needed bus word is transferred once for each box, and each line is written."""
    return max(sum(each.words for each in least), sum(each.lines for each in least))
