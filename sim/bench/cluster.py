"""Measures clusters of four, in exact cycles: multicast, the share of each in global memory, the second-level cache,
and a product on all cores.

Specification: docs/cluster.md, "Speed".
"""

import numpy as np

from tilewright.golden import TensorMap
from tilewright.golden.spec.pe.instruction import MmType
from tilewright.hw.cluster.params import ClusterParams
from tilewright.hw.core import CORE_PRESETS, CoreParams
from tilewright.hw.smem.params import SmemParams
from tilewright.hw.tmau.params import TMAU_PRESETS

from ..session.cluster import ClusterSession
from ..session.cluster_product import run_product
from ..settings import changed
from .cache import measure_cache
from .line import Line, share, timed

__all__ = ["PRODUCT", "measure", "product_cluster"]

_CORES = 4
_LATENCY = 100
#: Boxes that a core loads back to back.
_BOXES = 64
#: M, K and N of the product that is shared out, the presets that it is measured on, and how often as fast as one core
#: so many have to be.
PRODUCT = (64, 256, 64)
_PRODUCT_PRESETS = ("unit",)
_SPEEDUPS = {1: 1, 2: 1.95, 4: 3.8}
#: Bytes of a row of a box, and rows at most.
_ROW, _MOST_ROWS = 256, 16


def measure(preset, settings=(), *, simulator="verilator"):
    """Yields every :class:`Line` of a preset with the simulation's cycles a second so far."""
    params = changed(ClusterParams(_CORES, TMAU_PRESETS[preset]), settings)
    with ClusterSession(params=params, simulator=simulator, latency=_LATENCY) as session:
        session.place(np.random.default_rng(1).integers(0, 256, session.memory_bytes - 4096, np.uint8))
        yield from timed(session, _multicasts(session, preset))
        yield from timed(session, _streams(session, preset))
    yield from measure_cache(preset, settings, simulator=simulator)
    if preset in _PRODUCT_PRESETS:
        params = changed(product_cluster(preset), settings)
        with ClusterSession(params=params, simulator=simulator, latency=_LATENCY) as session:
            yield from timed(session, _products(session, preset))


def product_cluster(preset):
    """ClusterParams of cores of a preset that hold the whole product, behind a bus of 64 bytes."""
    core, smem = CORE_PRESETS[preset], SmemParams(64 * 1024)
    tmau = core.tmau.replace(bus_bytes=64, max_outstanding=64, max_burst=16, smem=smem)
    return ClusterParams(_CORES, CoreParams(tmau, core.pe.replace(smem=smem)))


def _products(session, preset):
    """A product whose rows are shared out to 1, 2 and 4 cores, from global memory to global memory."""
    (m, k, n), pe = PRODUCT, session.params.core.pe
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-128, 128, shape, np.int8) for shape in ((m, k), (k, n)))
    one = None
    for count, speedup in _SPEEDUPS.items():
        run = run_product(session, a, b, MmType.S8S8, count)
        if (run.c != a.astype(np.int32) @ b.astype(np.int32)).any():
            raise RuntimeError(f"the product on {count} cores is wrong")
        one = one or run
        limit = m * k * n // (count * pe.threads * pe.unit_bytes)
        yield Line(preset, f"product {m} x {k} x {n} on {count}", _LATENCY, limit, run.cycles,
                   f"{one.cycles / run.cycles:.2f} times", f">= {speedup}", one.cycles >= speedup * run.cycles,
                   note=f"{run.words} bus words read, {one.words} by one")  # fmt: skip


def _rows(session):
    """Rows of a box, two of which fit half of shared memory."""
    return min(_MOST_ROWS, session.params.smem.size_bytes // (4 * _ROW))


def _boxes(session, core, **fields):
    """Loads of the boxes of an image, of which each core has its part."""
    rows = _rows(session)
    tmap = TensorMap(element="u8", size=(_ROW, _CORES * _BOXES * rows), stride=(_ROW,), box=(_ROW, rows), address=0)
    slots = session.params.smem.size_bytes // (2 * _ROW * rows)
    return [
        session.command(tmap, (0, rows * (_BOXES * core + box)), _ROW * rows * (box % slots), **fields)
        for box in range(_BOXES)
    ]


def _run(session, commands):
    """Runs commands when descriptors are in the caches."""
    session.run([listed[:1] for listed in commands])
    run = session.run(commands)
    if any(stamp.error for core in run.cores for stamp in core.commands):
        raise RuntimeError(f"a command of the benchmark ends with an error: {run!r}")
    return run


def _multicasts(session, preset):
    """One core loads for 1, 2 and 4 cores; the cycles of the first are the limit of the others."""
    one = None
    for count in (1, 2, 4):
        run = _run(session, [_boxes(session, 0, cores=list(range(count)))])
        cycles = run.cores[0].commands[-1].done - run.cores[0].commands[0].accepted
        one = one or cycles
        delivered, read = count * _BOXES * _ROW * _rows(session), run.data_beats * session.params.tmau.bus_bytes
        extra = cycles - one
        yield Line(preset, f"multicast to {count}: cycles", _LATENCY, one, cycles, f"{extra} extra", "<= 0", extra <= 0,
                   note=f"{delivered / cycles:.1f} bytes delivered a cycle")  # fmt: skip
        yield Line(preset, f"multicast to {count}: bytes read", _LATENCY, delivered // count, read,
                   f"1/{delivered / read:g}", f"<= 1/{count}", read * count <= delivered)  # fmt: skip


def _streams(session, preset):
    """One core alone and all at once, from the first command to the last end: the use of the bus; what each got."""
    for count in (1, _CORES):
        run = _run(session, [_boxes(session, core) for core in range(count)])
        first = min(core.commands[0].accepted for core in run.cores[:count])
        last = max(core.commands[-1].done for core in run.cores[:count])
        words = count * _BOXES * _ROW * _rows(session) // session.params.tmau.bus_bytes
        yield share(preset, f"{count} core{'s' * (count > 1)} streaming", _LATENCY, words, last - first, 0.95)
    end = min(core.commands[-1].done for core in run.cores)
    ended = [sum(stamp.done <= end for stamp in core.commands) for core in run.cores]
    least, most = min(ended), max(ended)
    yield Line(preset, f"{_CORES} cores streaming: least and most boxes", _LATENCY, most, least, f"{least / most:.3f}",
               ">= 0.95", least >= 0.95 * most)  # fmt: skip
