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
    cases : dict of str to Totals
        The parts of a workload that are worth a row and a bar each, by their names.
    charts : dict of str to Picture
        Caption to SVG text.
    tables : dict of str to (sequence, list)
        Caption to headings and rows, of text.
    """

    facts: tuple = ()
    pictures: dict = field(default_factory=dict)
    cases: dict = field(default_factory=dict)
    charts: dict = field(default_factory=dict)
    tables: dict = field(default_factory=dict)


@dataclass
class Totals:
    """Sums over the runs of a workload.

    Attributes
    ----------
    unit : str
        What the work is counted in: bytes, or MACs.
    parts : int
        Boxes that were moved, jobs, or programs.
    work : int
        Bytes landed in shared memory, fill included; or products of two elements that the result needs.
    cycles : int
        From the first command or instruction accepted to the last one complete, run by run.
    limit : int
        Cycles that no machine can do without, run by run.
    steady_cycles, steady_limit : int
        The same from the completion of the first box of a run on, without the boxes it completed.
    problems : list of str
        Differences from the golden model, and everything else that should not be.
    """

    unit: str = "bytes"
    parts: int = 0
    work: int = 0
    cycles: int = 0
    limit: int = 0
    steady_cycles: int = 0
    steady_limit: int = 0
    problems: list = field(default_factory=list)

    @property
    def utilisation(self):
        """Limit over cycles, start and end of each run included."""
        return self.limit / self.cycles if self.cycles else 0.0

    @property
    def steady(self):
        """Limit over cycles once boxes come back to back; None if no run had a second box."""
        return self.steady_limit / self.steady_cycles if self.steady_cycles else None

    @property
    def verdict(self):
        """One word or two."""
        return "equal" if not self.problems else f"{len(self.problems)} PROBLEMS"

    @property
    def cells(self):
        """The columns that every table of totals has, from ``parts`` to ``verdict``, as text."""
        steady = "–" if self.steady is None else f"{self.steady:.1%}"
        return (f"{self.parts:,}", f"{self.work:,} {self.unit}", f"{self.cycles:,}", f"{self.limit:,}",
                f"{self.utilisation:.1%}", steady, self.verdict)  # fmt: skip

    def add(self, other):
        """Counts what another one has, and its problems, to this one."""
        for name in ("parts", "work", "cycles", "limit", "steady_cycles", "steady_limit", "problems"):
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def require(self, seen, wanted, what):
        """Adds a problem if two arrays differ."""
        seen, wanted = np.asarray(seen), np.asarray(wanted)
        if seen.shape != wanted.shape:
            self.problems.append(f"{what}: there are {seen.shape} values, not {wanted.shape}")
        elif (seen != wanted).any():
            self.problems.append(f"{what}: {np.count_nonzero(seen != wanted)} of {wanted.size} values differ")
