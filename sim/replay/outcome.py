"""What comes out of a replay case, wherever it ran."""

from typing import NamedTuple

__all__ = ["Outcome"]


class Outcome(NamedTuple):
    """What came out of a case: its result record (docs/replay.md, "Results"), and memories by name as uint8 arrays."""

    record: dict
    memories: dict
