"""What comes out of a replay case, wherever it ran."""

from types import MappingProxyType
from typing import NamedTuple

__all__ = ["Judgement", "Outcome", "shared_names"]


class Outcome(NamedTuple):
    """What came out of a case: its result record (docs/replay.md, "Results"), and memories by name as uint8 arrays."""

    record: dict
    memories: dict


class Judgement(NamedTuple):
    """What golden makes of a case, and what the specification leaves open of that.

    Attributes
    ----------
    outcome : Outcome
    open_bytes : dict of str to OpenBytes
        By the names of memories; of those that are not there, no byte is open.
    undecided : str or None
        Why what comes out depends on open bytes in another way, as a sentence.
    """

    outcome: Outcome
    open_bytes: dict = MappingProxyType({})
    undecided: str | None = None

    @classmethod
    def of(cls, outcome, open_bytes):
        """With the reason that the first of the memories has, if one has."""
        return cls(outcome, open_bytes, next(filter(None, (held.undecided for held in open_bytes.values())), None))


def shared_names(cores):
    """Names of the shared memories of so many cores."""
    return [f"smem{core}" for core in range(cores)] if cores > 1 else ["smem"]
