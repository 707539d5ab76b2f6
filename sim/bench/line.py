"""Lines of the benchmark's table: a measurement with its limit and its target."""

from dataclasses import dataclass, field, replace

__all__ = ["HEAD", "Line", "row", "rows", "share", "timed"]

HEAD = f"{'preset':<24} {'measurement':<52} {'latency':>7} {'limit':>7} {'cycles':>7} {'figure':>12} {'target':>8}"


@dataclass(frozen=True)
class Line:
    """One line of the table. ``limit`` and ``measured`` are cycles, or the quantity that ``figure`` names.

    Attributes
    ----------
    preset, name : str
    latency : int or None
        Latency of the memory in cycles; None without memory.
    limit : int
        The lowest possible value; for latencies, the highest that is allowed.
    measured : int
    figure : str
        The value that is compared with the target: utilisation, or cycles.
    target : str
    met : bool
    counters : dict
        Performance counters that explain the figure, by name.
    note : str
        Further text.
    macs : float or None
        Multiplications in percent of the engine's peak in these cycles; None if that has no meaning.
    each : float or None
        Cycles for each element; None if that has no meaning.
    """

    preset: str
    name: str
    latency: int | None
    limit: int
    measured: int
    figure: str
    target: str
    met: bool
    counters: dict = field(default_factory=dict)
    note: str = ""
    macs: float | None = None
    each: float | None = None

    def noted(self, note, share_of_macs):
        """The same line with a note, which ends with its share of the peak of multiplications."""
        return replace(self, note=f"{note}, {share_of_macs:.1%} of MACs", macs=100 * share_of_macs)


def share(preset, name, latency, limit, measured, target, **counters):
    """A line whose figure is a utilisation: compared unrounded, printed to a tenth of a percent."""
    reached = limit / measured
    wanted = "none" if target is None else f">= {target:.0%}"
    met = target is None or reached >= target
    return Line(preset, name, latency, limit, measured, f"{reached:.1%}", wanted, met, counters)


def timed(session, lines):
    """Yields each line with the cycles a second that the session has simulated so far."""
    for line in lines:
        yield line, session.simulation.cycles / max(session.simulation.seconds, 1e-9)


def row(line):
    """The text of the line, to be printed below :data:`HEAD`."""
    verdict = "" if line.target == "none" else "met" if line.met else "MISSED"
    latency = "" if line.latency is None else line.latency
    return (
        f"{line.preset:<24} {line.name:<52} {latency:>7} {line.limit:>7} {line.measured:>7} "
        f"{line.figure:>12} {line.target:>8}  {verdict:<6}  {line.note}"
    ).rstrip()


def rows(lines):
    """The lines of a preset as rows of a recorded result: cycles, limit, and limit / cycles in percent.

    The name of a row is the name of its line, with the latency if there are several, with the part after the preset's
    name, and with ``no target`` if the line has none.
    """
    several = len({line.latency for line in lines} - {None}) > 1
    found = {}
    for line in lines:
        latency = f", latency {line.latency}" if several and line.latency is not None else ""
        without = ", no target" if line.target == "none" else ""
        row = {"cycles": line.measured, "limit": line.limit, "share": 100 * line.limit / max(line.measured, 1)}
        name = "".join((line.name, latency, *line.preset.partition(",")[1:], without))
        extra = {"macs": line.macs, "each": line.each}
        found[name] = row | {field: value for field, value in extra.items() if value is not None}
    return found
