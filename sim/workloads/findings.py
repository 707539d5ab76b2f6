"""The results of a workload: figures, sentences and pictures; and what runs one and counts."""

from dataclasses import dataclass, field

import numpy as np

__all__ = ["Findings", "Totals", "Worker"]


@dataclass(frozen=True)
class Findings:
    """Results of a workload in addition to its row in the table.

    Attributes
    ----------
    facts : tuple of str
        Sentences with the figures of the workload.
    pictures : dict of str to ndarray
        Caption to height × width × 3 bytes, made of what was read from shared memory.
    cases : dict of str to Totals
        Parts of a workload with a row and a bar of their own, by name.
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
        Unit of ``work``: bytes, or MACs.
    parts : int
        Number of boxes that were moved, of jobs, or of programs.
    work : int
        Bytes that landed in shared memory, including fill; or the number of products of two elements in the result.
    cycles : int
        From acceptance of the first command or instruction to completion of the last one, summed over runs.
    limit : int
        The fewest cycles that any machine needs, summed over runs.
    steady_cycles, steady_limit : int
        The same, beginning with the completion of the first box of a run, without that box.
    problems : list of str
        Differences from the golden model, and all other errors.
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
        """Limit divided by cycles, including start and end of each run."""
        return self.limit / self.cycles if self.cycles else 0.0

    @property
    def steady(self):
        """Limit divided by cycles in steady state; None if no run had a second box."""
        return self.steady_limit / self.steady_cycles if self.steady_cycles else None

    @property
    def verdict(self):
        """The verdict of the comparison, one word or two."""
        return "equal" if not self.problems else f"{len(self.problems)} PROBLEMS"

    @property
    def cells(self):
        """The columns that every table of totals has, from ``parts`` to ``verdict``, as text."""
        steady = "–" if self.steady is None else f"{self.steady:.1%}"
        return (f"{self.parts:,}", f"{self.work:,} {self.unit}", f"{self.cycles:,}", f"{self.limit:,}",
                f"{self.utilisation:.1%}", steady, self.verdict)  # fmt: skip

    def add(self, other):
        """Adds the counts and problems of another one to this one."""
        for name in ("parts", "work", "cycles", "limit", "steady_cycles", "steady_limit", "problems"):
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def require(self, seen, wanted, what):
        """Adds a problem if two arrays differ."""
        seen, wanted = np.asarray(seen), np.asarray(wanted)
        if seen.shape != wanted.shape:
            self.problems.append(f"{what}: there are {seen.shape} values, not {wanted.shape}")
        elif (seen != wanted).any():
            self.problems.append(f"{what}: {np.count_nonzero(seen != wanted)} of {wanted.size} values differ")


class Worker:
    """Runs the parts of a workload on a session, and counts them; subclasses compare them too.

    Parameters
    ----------
    session : session
        Of the workload's machine.
    small : bool
        Simulation is slow: workloads take smaller operands.
    progress : callable
        Called with the number of compared parts.
    layers : int or None
        Number of layers of a network to run, from the first one on; None: all.

    Attributes
    ----------
    session, small, layers
    totals : Totals
        Of all parts.
    cases : dict of str to Totals
        Of the parts with a name.
    """

    UNIT = "MACs"

    def __init__(self, session, small=False, progress=lambda parts: None, layers=None):
        self.session, self.small, self.layers = session, small, layers
        self.totals = Totals(self.UNIT)
        self.cases = {}
        self._progress = progress

    def count(self, one, case=None):
        """Adds the Totals of a part to those of all parts, and of a case."""
        self.totals.add(one)
        if case is not None:
            self.cases.setdefault(case, Totals(self.UNIT)).add(one)
        self._progress(self.totals.parts)
