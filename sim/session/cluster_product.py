"""A product whose rows are shared out to the cores of a cluster."""

from typing import NamedTuple

import numpy as np

from tilewright.golden.pe.elements import values
from tilewright.golden.spec import Error

from .core_product import CoreProduct

__all__ = ["ProductRun", "run_product"]

_A, _B, _C, _TABLE = range(4)  # segments of a product


class ProductRun(NamedTuple):
    """What came of a product.

    ``cycles`` go from the first command to the last byte of C, ``words`` are bus words of global memory read, ``c`` is
    the product: int32, uint32 or float32.
    """

    cycles: int
    words: int
    c: np.ndarray


def run_product(session, a, b, kind, cores):
    """Runs C = A × B on the first ``cores`` cores of a ``ClusterSession`` of cores, from a reset on.

    Each has as many rows of A and C. Core 0 loads B once, for all of them. Loads, products and stores follow each other
    without overlap.

    Returns
    -------
    ProductRun

    Raises
    ------
    ValueError
        If the cores have no such share of the rows.
    RuntimeError
        If a command or an instruction ends with an error.
    """
    rows, rest = divmod(len(a), cores)
    if rest or not rows:
        raise ValueError(f"each of {cores} cores must have as many rows, not {len(a)} rows in all")
    session.clear()
    parts = [CoreProduct(part, b, kind, session.params.core, session.place) for part in np.split(a, cores)]
    loads, stores = [], []
    for core, part in enumerate(parts):
        own = [_move(session, move) for segment in (_A, _TABLE) for move in part.moves[segment]]
        # B lies at the same place in each shared memory, as the shapes of all parts are the same.
        common = [_move(session, move, cores=list(range(cores))) for move in part.moves[_B]]
        loads.append((common if core == 0 else []) + own)
        stores.append([_move(session, move, store=True) for move in part.moves[_C]])
    loaded = [f"commands{core}" for core in range(cores)]
    after = {f"instructions{core}": [f"segments{core}", f"pages{core}", *loaded] for core in range(cores)}
    runs = [session.run(loads, programs=[part.program for part in parts], after=after), session.run(stores)]
    for run in runs:
        if any(stamp.error != Error.NONE for core in run.cores for stamp in core.commands) or run.violations:
            raise RuntimeError(f"a command of the product ends with an error: {run!r}")
    if any(core.faults for core in runs[0].cores):
        raise RuntimeError(f"an instruction of the product ends with an error: {runs[0]!r}")
    element = parts[0].program.placement.segments[_C].element
    size = element.bytes * len(a) // cores * b.shape[1]
    found = [session.global_memory.read(part.c_address, size).view(np.uint32) for part in parts]
    c = values(np.concatenate(found).reshape(len(a), b.shape[1]), element)
    return ProductRun(sum(run.cycles for run in runs), runs[0].data_beats, c)


def _move(session, move, **fields):
    """The command of a page move."""
    return move.command(session.descriptor(move.tmap), **fields)
