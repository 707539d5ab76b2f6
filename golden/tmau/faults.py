"""Which address the record of a bus error names: of the first read word, or of the first write burst, that failed."""

import numpy as np

__all__ = ["failing_read", "failing_write"]

_PAGE = 4096  # no burst crosses an edge


def failing_read(gmem, addresses, bus_bytes):
    """Address of the first bus word, in the order of the byte ``addresses``, that lies outside ``gmem``; or None."""
    failing = addresses[~gmem.holds(addresses, 1)]
    return int(failing[0]) & -bus_bytes if failing.size else None


def failing_write(gmem, runs, bus_bytes, burst_bytes=_PAGE):
    """Address of the first burst with a word outside ``gmem``, or None; ``runs`` are addresses of runs by bytes.

    A burst begins with a run, where a run enters a page, and ``burst_bytes`` behind such a place.
    """
    failing = ~gmem.holds(runs, 1)
    if not failing.any():
        return None
    run = int(np.argmax(failing.any(axis=1)))
    first = int(runs[run][failing[run]][0])
    start = int(runs[run][0]) & -bus_bytes
    if start // _PAGE != first // _PAGE:
        start = first & -_PAGE
    return start + (first - start) // burst_bytes * burst_bytes
