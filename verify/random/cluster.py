"""Random commands for the cores of a cluster, in an order that does not matter between cores."""

import random
from dataclasses import dataclass

from tilewright.golden.tmau.transfer import tensor_fields
from tilewright.spec import LINE_BYTES, Element, Opcode, Reduction, Space

from .maps import random_start

__all__ = ["BARRIERS", "GLOBAL_BYTES", "ClusterBatch", "random_cluster_batches"]

#: Global memory: tensors that are only read, one part for the stores of each core, one that all reduce into; then
#: descriptors.
_TENSORS, _PART, _COMMON = 0x8000, 0x400, 0x400
_PARTS = _TENSORS + _COMMON
GLOBAL_BYTES = _PARTS + 16 * _PART
#: Barriers of each core, in the last lines of shared memory.
BARRIERS = 4


@dataclass(frozen=True)
class ClusterBatch:
    """Commands and settings of each core of a cluster.

    Attributes
    ----------
    commands : list of list of (dict, int or None)
        Fields of each core's commands, as a ``ClusterSession`` takes them, and descriptors of those that have one.
    waits : bool
        Each command waits for the one before; otherwise none reads what another one writes.
    isolation : list of (int, int)
        Masks ``reach`` and ``accepts`` of each core.
    windows : list of (int, int) or None
        Shared window of each core: first and last byte.
    """

    commands: list
    waits: bool
    isolation: list
    windows: list


def random_cluster_batches(seed, cores, smem_bytes, commands):
    """Yields batches without end, with ``commands`` commands for each core."""
    for number in range(1 << 30):
        rng = random.Random(f"cluster {seed} {number}")
        everyone = (1 << 16) - 1
        guarded = rng.random() < 0.5
        isolation = [
            (rng.getrandbits(16), rng.getrandbits(16)) if guarded and rng.random() < 0.5 else (everyone, everyone)
            for _ in range(cores)
        ]
        windows = [
            (LINE_BYTES * rng.randrange(4), smem_bytes - 1) if guarded and rng.random() < 0.3 else None
            for _ in range(cores)
        ]
        maker = _Maker(rng, cores, smem_bytes, rng.random() < 0.5)
        drawn = [[maker.command(core) for _ in range(commands)] for core in range(cores)]
        yield ClusterBatch(drawn, maker.waits, isolation, windows)


class _Maker:
    """Draws commands. Each core writes a part of its own of every shared memory; they add to a line together."""

    def __init__(self, rng, cores, smem_bytes, waits):
        self._rng, self._cores, self.waits = rng, cores, waits
        lines = smem_bytes // LINE_BYTES - 2
        self._part = lines // cores * LINE_BYTES
        self._added = lines * LINE_BYTES
        self._barriers = self._added + LINE_BYTES

    def command(self, core):
        """Fields of a command of a core, and its descriptor or None."""
        kinds = [self._load, self._copy, self._add]
        kinds += [self._store, self._within, self._add_global] if self.waits else []
        fields, descriptor = self._rng.choice(kinds)(core)
        barrier = self._barriers + 8 * (BARRIERS * core + self._rng.randrange(BARRIERS))
        signal = {"signal": 1, "barrier": barrier} if self._rng.random() < 0.6 else {}
        lands = fields["opcode"] == Opcode.LOAD or fields.get("destination_space") == Space.SHARED
        receivers = self._receivers()
        cores = {} if receivers is None else {"cores": receivers}
        if fields.get("source_space") == Space.SHARED and self._rng.random() < 0.6:
            cores["source_core"] = self._rng.randrange(16 if self._rng.random() < 0.05 else self._cores)
        return fields | (signal if lands else {}) | cores | {"wait": self.waits}, descriptor

    def _receivers(self):
        draw = self._rng.random()
        if draw < 0.2:
            return None
        if draw < 0.25:
            return self._rng.getrandbits(16)
        return self._rng.randrange(1, 1 << self._cores)

    def _place(self, core, size):
        """A place in a core's part of shared memory."""
        return self._part * core + 16 * self._rng.randrange((self._part - size) // 16 + 1)

    def _size(self):
        return 16 * self._rng.randint(1, min(24, self._part // 16))

    def _load(self, core):
        start = random_start(self._rng, first=0, end=_TENSORS, most_bytes=self._part)
        # The part is as large as the largest box.
        fields = tensor_fields(start.tmap, start.coords, self._part * core, start.offsets)
        return {"opcode": Opcode.LOAD} | fields, int.from_bytes(start.tmap.pack(), "little")

    def _block(self, source_space, source, destination_space, destination, size, **fields):
        return {"opcode": Opcode.COPY_BLOCK, "source_space": source_space, "source": source, "size": size,
                "destination_space": destination_space, "destination": destination} | fields, None  # fmt: skip

    def _source(self, size):
        return 16 * self._rng.randrange((_TENSORS - size) // 16)

    def _copy(self, core):
        size = self._size()
        return self._block(Space.GLOBAL, self._source(size), Space.SHARED, self._place(core, size), size)

    def _within(self, core):
        size = min(self._size(), self._part // 2 // 16 * 16)
        places = [self._part * core, self._part * core + self._part // 2 // 16 * 16]
        self._rng.shuffle(places)
        return self._block(Space.SHARED, places[0], Space.SHARED, places[1], size)

    def _store(self, core):
        size = self._size()
        at = _PARTS + _PART * core + 16 * self._rng.randrange((_PART - size) // 16)
        return self._block(Space.SHARED, self._place(core, size), Space.GLOBAL, at, size)

    def _add(self, core):
        size = 16 * self._rng.randint(1, LINE_BYTES // 16)
        fields, offset = {"reduction": Reduction.ADD, "element": Element.U32}, 16 * self._rng.randrange(9 - size // 16)
        at = self._added + offset
        return self._block(Space.GLOBAL, self._source(size), Space.SHARED, at, size, **fields)

    def _add_global(self, core):
        size = self._size()
        at = _TENSORS + 16 * self._rng.randrange((_COMMON - size) // 16)
        fields = {"reduction": Reduction.ADD, "element": Element.U32}
        return self._block(Space.SHARED, self._place(core, size), Space.GLOBAL, at, size, **fields)
