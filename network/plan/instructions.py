"""The instructions of a program (docs/network.md, "The program")."""

from dataclasses import dataclass
from typing import NamedTuple

from .steps import Transfer

__all__ = ["Barrier", "Command", "Commit", "Hold", "Instructions", "Job", "KernelCall", "Signal", "Span", "WaitKernels"]


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


@dataclass
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
