"""What comes out of a replay case, wherever it ran."""

from typing import NamedTuple

__all__ = ["Outcome", "shared_names"]


class Outcome(NamedTuple):
    """What came out of a case: its result record (docs/replay.md, "Results"), and memories by name as uint8 arrays."""

    record: dict
    memories: dict


def shared_names(cores):
    """Names of the shared memories of so many cores."""
    return [f"smem{core}" for core in range(cores)] if cores > 1 else ["smem"]
