"""What a workload of the whole accelerator is given: a session, and a place for its figures."""

from .findings import Totals

__all__ = ["Accelerator"]


class Accelerator:
    """Programs on all engines; whoever runs them compares what they leave.

    Parameters
    ----------
    session : Session
        Of a core with all engines.
    layers : int or None
        Only so many layers of a network; None: all.

    Attributes
    ----------
    session, layers
    totals : Totals
        Of all programs.
    cases : dict of str to Totals
        Of those that have a name.
    """

    def __init__(self, session, layers=None):
        self.session, self.layers = session, layers
        self.totals = Totals("MACs")
        self.cases = {}

    def count(self, case, one):
        """Adds a program's Totals to those of all, and to those of a case."""
        for totals in (self.totals, self.cases.setdefault(case, Totals("MACs"))):
            totals.add(one)
