"""The table of networks: what the program of each is expected to take, or why it is refused.

Shapes are those of well-known networks, weights are random (``tilewright.network.models.zoo``).
"""

from typing import NamedTuple

from tilewright.network.compiled import compile as compile_network
from tilewright.network.machine import MACHINES
from tilewright.network.models.zoo import NETWORKS, build
from tilewright.network.reader import read_model
from tilewright.network.reader.refusals import refusals_of
from tilewright.progress import report

__all__ = ["HEAD", "Row", "figures", "rows"]

HEAD = f"{'network':<19}{'MACs':>14}{'cycles':>11}{'of MACs':>9}  for"


class Row(NamedTuple):
    """A line of the table.

    Attributes
    ----------
    name : str
    macs, cycles : int
        Multiplications, and the cycles that the plan expects; 0 if the network is refused.
    share : float
        Multiplications in percent of what the multipliers could do in these cycles.
    words : int
        Bus words that the program reads.
    reasons : list of str
        Why it is refused.
    """

    name: str
    macs: int = 0
    cycles: int = 0
    share: float = 0.0
    words: int = 0
    reasons: tuple = ()

    def __str__(self):
        about = NETWORKS[self.name].about
        if self.reasons:
            return f"{self.name:<19}{'refused':>34}  {about}: {self.reasons[0]}"
        return f"{self.name:<19}{self.macs:>14,}{self.cycles:>11,}{self.share:>8.1f}%  {about}"


def rows(names, preset):
    """Yields the row of each network; every one is quantised, read and compiled."""
    for number, name in enumerate(names):
        report("networks", number, len(names))
        model, _ = build(name)
        if reasons := refusals_of(model):
            yield Row(name, reasons=tuple(reasons))
            continue
        plan = compile_network(read_model(model), preset).plan
        words = sum(span.words for span in plan.spans if span.engine == "load")
        cycles = plan.cycles
        yield Row(name, plan.macs, cycles, 100 * plan.macs / MACHINES[preset].conv.peak / cycles, words)


def figures(table):
    """Figures to record, by the names of the networks that are not refused."""
    return {row.name: {"macs": row.macs, "cycles": row.cycles, "share": row.share, "words": row.words}
            for row in table if not row.reasons}  # fmt: skip
