"""One run of a scripted harness: what sessions of all designs do."""

from ..harness.script import ScriptRowLayout
from ..hdl.packing import pack_rows
from ..hdl.simulation import SimulationError

__all__ = ["log_windows", "run_scripts"]


def run_scripts(simulation, items, scripts, *, after, depth, reset, limit, patience, drain=0):
    """Has a ``ScriptedHarness`` issue scripts, and waits until all is complete.

    Parameters
    ----------
    simulation : Simulation
    items : dict of str to shape
        As the harness has them.
    scripts : dict of str to list
        Rows of ``ScriptRowLayout`` for each port.
    after : dict of str to sequence of str
        Ports that begin when others have finished.
    depth : int
        Of the harness's scripts.
    reset : bool
        Begin with a reset.
    limit : int or None
        Stop after so many cycles, wherever things are.
    patience : int
        Without a limit, give up after so many.
    drain : int
        Cycles to go on at the end.

    Returns
    -------
    dict of str to int
        Every status.

    Raises
    ------
    SimulationError
        If there is no limit, and something is not complete in time.
    """
    _load_scripts(simulation, items, scripts, after, depth)
    statuses, _ = simulation.exchange(reset=reset, start=True, limit=patience if limit is None else limit, drain=drain)
    if not statuses["finished"] and limit is None:
        late = [port for port in items if statuses[f"{port}_done"] < len(scripts.get(port, ()))]
        raise SimulationError(f"{' and '.join(late)} are not complete after {patience} cycles")
    return statuses


def log_windows(statuses, ports, others, depths):
    """What to dump to have the logs of ``ports``, and ``others``, as far as they are filled."""
    counts = {port: statuses[f"{port}_done"] for port in ports}
    counts |= {name: statuses[f"{name}_count"] for name in others}
    return {f"{name}_log": (0, min(count, depths[name])) for name, count in counts.items()}


def _load_scripts(simulation, items, scripts, after, depth):
    ports = tuple(items)
    for port, shape in items.items():
        rows = scripts.get(port, ())
        if len(rows) > depth:
            raise ValueError(f"a run must have at most {depth} {port}, not {len(rows)}")
        row = ScriptRowLayout(shape)
        simulation.load(f"{port}_script", 0, pack_rows(row, rows, row.bytes))
        simulation.controls[f"{port}_count"] = len(rows)
        simulation.controls[f"{port}_after"] = sum(1 << ports.index(other) for other in after.get(port, ()))
