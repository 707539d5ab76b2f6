"""Which address the record of a bus error holds (docs/tmau.md, "Bus errors")."""

from typing import NamedTuple

import numpy as np

from ..spec import Error
from .left_open import stretch_starts

__all__ = ["BusError", "failed_read", "failed_write"]


class BusError(NamedTuple):
    """An error record without tag and field. Hardware may report one of ``others`` instead of ``address``."""

    code: Error
    address: int
    others: range = range(0)


def failed_read(gmem, addresses, bus_bytes):
    """The :class:`BusError` of the first of the byte ``addresses``, in this order, that lies outside ``gmem``; or None.

    Its address is that of the bus word.
    """
    failing = addresses[~gmem.holds(addresses, 1)]
    return BusError(Error.READ, int(failing[0]) & -bus_bytes) if failing.size else None


def failed_write(gmem, addresses, bus_bytes):
    """The same of bytes that are written. The words of the stretch before the failing one are its others."""
    failing = np.flatnonzero(~gmem.holds(addresses, 1))
    if not failing.size:
        return None
    written = addresses[: failing[0] + 1]
    first, last = (int(written[place]) & -bus_bytes for place in (stretch_starts(written)[-1], -1))
    return BusError(Error.WRITE, last, range(first, last, bus_bytes))
