"""The instructions of a program, and where its barriers lie in shared memory (docs/network.md, "The program")."""

from dataclasses import dataclass
from typing import NamedTuple

from ..lower.places import BLOCK
from .steps import Transfer

__all__ = [
    "JOBS", "LOADS", "MEETINGS", "SCRATCH", "TOKEN", "TURNS", "Barrier", "Command", "Commit", "Hold", "Instructions",
    "Job", "KernelCall", "Signal", "Span", "WaitKernels", "cast_barrier", "job_barrier", "load_barrier",
    "ready_barrier",
]  # fmt: skip

#: Barriers of loads, and pairs of barriers of jobs: of their ends, and of when their weights have been read. They lie
#: one after the other from address 0 of shared memory on; then the block that fences load.
LOADS, JOBS = 8, 3
SCRATCH = 8 * (LOADS + 2 * JOBS)
#: In a cluster: 16 bytes that are copied to signal to cores, then barriers of meetings, then for each group of cores
#: those of cores that are ready for a multicast, and of multicasts. Each kind takes turns. All must be ready for one
#: arrival before any program starts.
TOKEN = SCRATCH + BLOCK
MEETINGS = range(TOKEN + BLOCK, TOKEN + BLOCK + 16, 8)
TURNS = 4


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
    """A transfer: a load that ``barrier`` counts, or a store if that is None.

    ``cores`` is the mask of the cores that get what is loaded, or 0: this one.
    """

    transfer: Transfer
    layer: int
    barrier: int | None
    cores: int = 0
    words: int = 1


class Signal(NamedTuple):
    """Copies 16 bytes from ``source`` to ``target`` in each of ``cores``, a mask, where ``barrier`` counts them."""

    source: int
    target: int
    barrier: int
    cores: int
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


@dataclass(frozen=True)
class Span:
    """What an engine is expected to do from cycle ``start`` to ``end``.

    ``engine`` is "load", "conv", "pe" or "store". ``words`` is the number of bus words that it moves, ``receivers`` the
    number of cores that get them.
    """

    engine: str
    layer: int
    start: int
    end: int
    words: int = 0
    receivers: int = 1


def ready_barrier(cast):
    """Where the first core of a group counts others that are ready for a multicast.

    A core is not ready for a multicast before it has got the one that had the same barrier.
    """
    return MEETINGS.stop + 8 * (2 * TURNS * cast.group + cast.turn % TURNS)


def cast_barrier(cast):
    """Where the barrier of a multicast lies in each core of its group."""
    return ready_barrier(cast) + 8 * TURNS


def load_barrier(place):
    """Where the barrier of a load for this core alone lies."""
    return 8 * (place % LOADS)


def job_barrier(number):
    """Where the first of a job's pair of barriers lies."""
    return 8 * (LOADS + 2 * (number % JOBS))
