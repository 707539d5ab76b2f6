"""How what hardware did differs from golden: one sentence for each difference."""

from tilewright.golden import ErrorRecord
from tilewright.spec import Error

__all__ = ["bus_differences", "ending_differences", "memory_differences", "record_differences", "smallest", "unequal"]


def bus_differences(run):
    """Rules of the bus that a run has broken."""
    return [f"the bus broke {rule.name}: {rule.doc}" for rule in (*run.violations, *run.late)]


def ending_differences(run, machine):
    """How each command ended, by its tag."""
    codes = {record.tag: record.code for record in machine.errors}
    return unequal(
        {
            f"the error of command {number}": (stamp.error, codes.get(stamp.tag, Error.NONE))
            for number, stamp in enumerate(run.commands)
        }
    )


def record_differences(words, records):
    """Whether the three registers of the error record hold one of ``records``; none of an empty sequence."""
    seen = ErrorRecord.of_registers(*words)
    wanted = list(records) or [ErrorRecord(Error.NONE, 0, 0, 0)]
    if any(record.admits(seen) for record in wanted):
        return []
    return [f"the error record is {seen}, not one of {wanted} as on golden"]


def memory_differences(name, seen, wanted, before, open_bytes=None):
    """Whether a memory is as on golden; ``before`` tells which of the wrong bytes should not have changed at all.

    ``open_bytes`` are bytes of ``wanted`` that need not be equal; None: all must be.
    """
    differing = (open_bytes.wrong(seen) if open_bytes else seen != wanted).nonzero()[0]
    if not len(differing):
        return []
    guarded = int((wanted[differing] == before[differing]).sum())
    return [f"{name} differs in {len(differing)} bytes, {guarded} of them guarded, first at {differing[0]:#x}"]


def unequal(pairs):
    """Of pairs of what was seen and what golden has, by their name, those that differ."""
    return [f"{name} is {seen}, not {wanted} as on golden" for name, (seen, wanted) in pairs.items() if seen != wanted]


def smallest(items, fails):
    """The smallest part of a tuple that still fails, or None if the whole does not: one item alone if any fails alone.

    Parameters
    ----------
    items : tuple
    fails : callable
        Whether a tuple of some of the items, in their order, fails.
    """
    for item in items:
        if fails((item,)):
            return (item,)
    if not fails(items):
        return None
    size = len(items) // 2
    while size:
        for first in range(0, len(items), size):
            fewer = items[:first] + items[first + size :]
            if fewer and fails(fewer):
                items = fewer
                break
        else:
            size //= 2
    return items
