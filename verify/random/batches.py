"""Batches of random loads that are issued back to back, and their surroundings."""

import random
from dataclasses import dataclass, replace
from typing import NamedTuple

from tilewright.golden import TensorMap
from tilewright.golden.tmau.checks import check_command
from tilewright.golden.tmau.descriptor import check_word
from tilewright.golden.tmau.tile import footprint
from tilewright.spec import COMMAND, Opcode

from .commands import Surroundings
from .maps import random_load, random_place

__all__ = ["BARRIERS", "TENSOR_BYTES", "Batch", "Load", "random_batches"]

#: Bytes of global memory in which tensors lie.
TENSOR_BYTES = 1 << 20
#: Barriers of a batch, side by side in a line of shared memory that no legal load touches.
BARRIERS = 16

_LINE = 128
_TOGETHER = 3  # batches from one reset to the next
_RECENT_MAPS = 3  # maps that are used again, in multiples of the descriptor cache
_REUSED = 0.4  # probability of an earlier map
_ODD = 0.05  # probability of a command that must be refused, or is not a load
_SIGNALLED = 0.4  # probability of a barrier
_MOST_SIGNALLED = 1 << 19  # bytes on one barrier: half of what it can count


class Load(NamedTuple):
    """One command of a batch; legal or not."""

    tmap: TensorMap
    coords: tuple
    smem: int
    barrier: int | None = None
    opcode: int = Opcode.LOAD
    skew: int = 0  # bytes by which the address of the descriptor is wrong

    def is_legal(self, smem_bytes):
        """Whether it is a load that must land in a shared memory of this size."""
        if self.opcode != Opcode.LOAD or check_word(int.from_bytes(self.tmap.pack(), "little")):
            return False
        coords = (*self.coords, *[0] * (5 - len(self.coords)))
        barrier = {"signal": self.barrier is not None, "barrier": self.barrier}
        command = COMMAND.unpack(0) | {"opcode": self.opcode, "descriptor": self.skew, "coords": coords}
        command |= {"smem": self.smem} | barrier
        return check_command(command, self.tmap, smem_bytes) is None


@dataclass(frozen=True)
class Batch(Surroundings):
    """Commands that are issued asynchronously.

    Attributes
    ----------
    fresh : bool
        Whether hardware is reset and descriptors are forgotten. Otherwise the state of earlier batches is kept.
    barrier_line : int
        Address of the barriers.
    loads : tuple of Load
    """

    fresh: bool
    barrier_line: int
    loads: tuple

    def moved(self, tmap):
        """The map at its place in the address space of this batch."""
        return replace(tmap, address=tmap.address + self.base, check=False)


def random_batches(seed, params, descriptors):
    """Yields batches until they hold ``descriptors`` different maps; a function of its arguments alone.

    Commands overlap in the pipeline, descriptors are hit, missed and evicted, some destinations overlap, and a few
    commands must be refused.
    """
    rng = random.Random(seed)
    count = made = 0
    while made < descriptors:
        fresh = count % _TOGETHER == 0
        if fresh:
            recent_maps = []
            base = _base(rng, params, count // _TOGETHER)
        maker = _Maker(rng, params, recent_maps)
        batch = Batch(
            name=f"seed {seed}, batch {count}",
            base=base,
            fresh=fresh,
            barrier_line=maker.barrier_line,
            latency=rng.choice([2, 3, 20, 100, 200, rng.randint(2, 200)]),
            stall=(rng.choice([0, 0, 0.3, 0.7]), rng.choice([0, 0, 0.3, 0.7])),
            issue_stall=rng.choice([0, 0, 0.8]),
            answer_stall=rng.choice([0, 0.5]),
            seed=rng.getrandbits(16),
            loads=tuple(maker.load() for _ in range(rng.randint(16, 64))),
        )
        made += maker.new
        count += 1
        yield batch


def _base(rng, params, turn):
    """Where memory begins, in turn: at the bottom, at the top, and across the end of 4 GiB if there is more."""
    whole = 32 << 20  # more than the memory of a session
    bases = [0, (1 << params.addr_width) - whole]
    if params.addr_width > 32:
        bases.append((1 << 32) - 4096 * rng.randint(1, TENSOR_BYTES // 4096))
    return bases[turn % len(bases)]


class _Maker:
    """Makes the loads of one batch; ``recent_maps`` are maps of earlier batches, changed in place."""

    def __init__(self, rng, params, recent_maps):
        self._rng = rng
        self._smem = params.smem.size_bytes
        self._recent_maps = recent_maps
        self._depth = _RECENT_MAPS * params.cache_entries
        self.barrier_line = rng.choice([0, self._smem - _LINE])
        self._first = _LINE if self.barrier_line == 0 else 0  # byte that loads may reach
        self._ring = self._first if rng.random() < 0.5 else None
        self._signalled = [0] * BARRIERS
        self.new = 0

    def load(self):
        rng, room = self._rng, self._smem - _LINE
        if self._recent_maps and rng.random() < _REUSED:
            tmap = rng.choice([self._recent_maps[-1], rng.choice(self._recent_maps)])
            coords = random_place(rng, tmap)
            smem = _LINE * rng.randint(0, (room - footprint(tmap)) // _LINE)
        else:
            largest = rng.choice([256, 1024, 1024, 4096, 4096, 16384])
            tmap, coords, smem = random_load(rng, gmem_bytes=TENSOR_BYTES, smem_bytes=room, max_bytes=largest)
            self.new += 1
            self._recent_maps.append(tmap)
            del self._recent_maps[: -self._depth]
        load = Load(tmap, tuple(coords), self._placed(smem, footprint(tmap)), self._barrier(footprint(tmap)))
        return rng.choice(_ODD_ONES)(rng, load, self._smem) if rng.random() < _ODD else load

    def _placed(self, smem, size):
        """Half of the batches lay their boxes side by side, so that none hides what another one did."""
        if self._ring is None:
            return self._first + smem
        if self._ring + size > self._first + self._smem - _LINE:
            self._ring = self._first
        place = self._ring
        self._ring += -(-size // _LINE) * _LINE + _LINE * self._rng.randint(0, 2)
        return place

    def _barrier(self, size):
        number = self._rng.randrange(BARRIERS)
        if self._rng.random() >= _SIGNALLED or self._signalled[number] + size > _MOST_SIGNALLED:
            return None
        self._signalled[number] += size
        return self.barrier_line + 8 * number


#: Ways to make a legal load an illegal command, or another one.
_ODD_ONES = (
    lambda rng, load, smem: load._replace(smem=load.smem + 16 * rng.randint(1, 7)),
    lambda rng, load, smem: load._replace(smem=smem - _LINE * rng.randint(0, (footprint(load.tmap) - 1) // _LINE)),
    lambda rng, load, smem: load._replace(smem=load.smem + (1 << rng.randint(20, 31))),
    lambda rng, load, smem: load._replace(barrier=rng.randrange(smem) | 4),
    lambda rng, load, smem: load._replace(barrier=smem << rng.randint(0, 10)),
    lambda rng, load, smem: load._replace(coords=_all_five(load.coords, rng.choice([-1, 1, 1 << 30]))),
    lambda rng, load, smem: load._replace(opcode=rng.choice([0, 14, 15])),
    lambda rng, load, smem: load._replace(opcode=rng.choice([Opcode.INVALIDATE, Opcode.INVALIDATE_ALL])),
    lambda rng, load, smem: load._replace(skew=rng.randint(1, 63)),
    lambda rng, load, smem: load._replace(tmap=replace(load.tmap, address=load.tmap.address + 8, check=False)),
    lambda rng, load, smem: load._replace(tmap=replace(load.tmap, unaligned=True, check=False)),
    lambda rng, load, smem: load._replace(tmap=replace(load.tmap, gather0=True, check=False)),
)


def _all_five(coords, last):
    """Coordinates of all dimensions that a command has; the last one is ``last``, which rank 5 allows."""
    return (*coords, *[0] * (4 - len(coords)), last)[:5]
