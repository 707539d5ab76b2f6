"""The argument of a workload of the whole accelerator: a session, with the totals of its programs."""

from .findings import Totals

__all__ = ["Accelerator"]


class Accelerator:
    """Runs programs on all engines. The workload compares their results.

    Parameters
    ----------
    session : Session
        Of a core with all engines.
    layers : int or None
        Number of layers of a network to run, from the first one on; None: all.

    Attributes
    ----------
    session, layers
    totals : Totals
        Of all programs.
    cases : dict of str to Totals
        Of programs with a name.
    """

    def __init__(self, session, layers=None):
        self.session, self.layers = session, layers
        self.totals = Totals("MACs")
        self.cases = {}

    def count(self, case, one):
        """Adds a program's Totals to the totals of all programs, and of a case."""
        for totals in (self.totals, self.cases.setdefault(case, Totals("MACs"))):
            totals.add(one)
