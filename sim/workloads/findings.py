"""What a workload leaves behind: figures, sentences and pictures."""

from dataclasses import dataclass, field

import numpy as np

__all__ = ["Findings", "Totals"]


@dataclass(frozen=True)
class Findings:
    """What a workload says beside its row in the table.

    Attributes
    ----------
    facts : tuple of str
        Sentences with figures of its own.
    pictures : dict of str to ndarray
        Caption to height × width × 3 bytes, made of what was read from shared memory.
    """

    facts: tuple = ()
    pictures: dict = field(default_factory=dict)


@dataclass
class Totals:
    """Sums over the batches of a workload.

    Attributes
    ----------
    boxes : int
    bytes : int
        Landed in shared memory, fill included.
    cycles : int
        From the first command accepted to the last one complete, batch by batch.
    limit : int
        Cycles that no machine can do without, batch by batch.
    steady_cycles, steady_limit : int
        The same from the completion of the first box of a batch on, without the boxes it completed.
    problems : list of str
        Differences from the golden model, and everything else that should not be.
    """

    boxes: int = 0
    bytes: int = 0
    cycles: int = 0
    limit: int = 0
    steady_cycles: int = 0
    steady_limit: int = 0
    problems: list = field(default_factory=list)

    @property
    def utilisation(self):
        """Limit over cycles, start and end of each batch included."""
        return self.limit / self.cycles if self.cycles else 0.0

    @property
    def steady(self):
        """Limit over cycles once boxes come back to back; None if no batch had a second box."""
        return self.steady_limit / self.steady_cycles if self.steady_cycles else None

    @property
    def verdict(self):
        """One word or two."""
        return "equal" if not self.problems else f"{len(self.problems)} PROBLEMS"

    def require(self, seen, wanted, what):
        """Adds a problem if two arrays differ."""
        seen, wanted = np.asarray(seen), np.asarray(wanted)
        if seen.shape != wanted.shape:
            self.problems.append(f"{what}: there are {seen.shape} values, not {wanted.shape}")
        elif (seen != wanted).any():
            self.problems.append(f"{what}: {np.count_nonzero(seen != wanted)} of {wanted.size} values differ")
