"""Arguments of sessions and their runs, checked before anything is built or sent."""

from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from tilewright.golden.arguments import integer, shown
from tilewright.golden.suggestion import suggestion

__all__ = ["chosen", "port_order", "probability", "run_cycles", "session_options", "window"]

#: Cycles that the simulation counts at a time.
_CYCLES_MAX = (1 << 32) - 1


def chosen(presets, preset, params):
    """``params``, or those of the preset if they are None."""
    if params is None:
        if not isinstance(preset, str) or preset not in presets:
            wrong = f"{shown(preset)}{suggestion(preset, presets)}"
            raise ValueError(f"the preset must be one of {', '.join(presets)}, not {wrong}")
        return presets[preset]
    kind = type(next(iter(presets.values())))
    if not isinstance(params, kind):
        raise TypeError(f"params must be {kind.__name__}, not {shown(params)}")
    return params


def session_options(simulators, *, simulator, patience, **paths):
    """Checks what every session has: its simulator, its patience in cycles, and paths to leave files at, or None."""
    if not isinstance(simulator, str) or simulator not in simulators:
        wrong = f"{shown(simulator)}{suggestion(simulator, simulators)}"
        raise ValueError(f"the simulator must be one of {', '.join(simulators)}, not {wrong}")
    integer("patience", patience, 1, _CYCLES_MAX)
    for name, path in paths.items():
        if not isinstance(path, str | Path | None):
            raise TypeError(f"{name} must be a path, not {shown(path)}")


def run_cycles(limit, drain):
    """``limit``, which may be None, and ``drain`` of a run."""
    limit = None if limit is None else integer("limit", limit, 1, _CYCLES_MAX)
    return limit, integer("drain", drain, 0, _CYCLES_MAX)


def port_order(ports, after):
    """``after`` of a run, checked: for each port those that must have finished before."""
    if not isinstance(after, dict):
        raise TypeError(f"after must be a dictionary of ports, not {shown(after)}")
    for port, others in after.items():
        if not isinstance(others, list | tuple | set | frozenset):
            raise TypeError(f"after must give a list of ports for {shown(port)}, not {shown(others)}")
        for name in (port, *others):
            if name not in ports:
                raise ValueError(f"after must name ports among {', '.join(ports)}, not {shown(name)}")
    try:
        TopologicalSorter(after).prepare()
    except CycleError as error:
        raise ValueError(f"after must not have ports wait for each other: {' for '.join(error.args[1])}") from None
    return after


def window(name, value, memory):
    """A window of ``memory``, a backdoor: its first address and number of bytes; None or False for none, True for all.

    IndexError if it does not lie there.
    """
    if value is None or value is False:
        return None
    if value is True:
        return memory.base, len(memory)
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise TypeError(f"{name} must be an address and a number of bytes, not {shown(value)}")
    address, count = integer(name, value[0], 0), integer(name, value[1], 0)
    memory.check(address, count)
    return address, count


def probability(value):
    """A probability as a harness takes it, in 256ths."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"the probability of a pause must be a number, not {shown(value)}")
    if not 0 <= value < 1:
        raise ValueError(f"the probability of a pause must be at least 0 and less than 1, not {value!r}")
    return min(round(256 * value), 255)
