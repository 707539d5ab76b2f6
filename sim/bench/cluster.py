"""Measures a cluster of four cores, in exact cycles: multicast, the share of each in global memory, a product.

Specification: docs/cluster.md, "Speed".
"""

import numpy as np

from tilewright.golden import TensorMap
from tilewright.golden.spec.pe.instruction import MmType
from tilewright.hw.cluster.params import ClusterParams
from tilewright.hw.core import CORE_PRESETS, CoreParams
from tilewright.hw.smem.params import SmemParams
from tilewright.hw.tmau.params import TMAU_PRESETS

from ..compare.core_product import CoreProduct
from ..session.cluster import ClusterSession
from .line import Line, share, timed

__all__ = ["measure"]

_CORES = 4
_LATENCY = 100
#: Boxes that a core loads back to back.
_BOXES = 64
#: M, K and N of the product that is shared out, and how much faster cores have to be than one.
_PRODUCTS = {"unit": (64, 512, 64)}
_SPEEDUPS = {1: 1, 2: 1.95, 4: 3.8}
_A, _B, _C, _TABLE = range(4)  # segments of a product
#: Bytes of a row of a box, and rows at most.
_ROW, _MOST_ROWS = 256, 16


def measure(preset, *, simulator="verilator"):
    """Yields every :class:`Line` of a preset with the simulation's cycles a second so far."""
    params = ClusterParams(_CORES, TMAU_PRESETS[preset])
    with ClusterSession(params=params, simulator=simulator, latency=_LATENCY) as session:
        session.place(np.random.default_rng(1).integers(0, 256, session.memory_bytes - 4096, np.uint8))
        yield from timed(session, _multicasts(session, preset))
        yield from timed(session, _streams(session, preset))
    if preset in _PRODUCTS:
        with ClusterSession(params=ClusterParams(_CORES, _product_core(preset)), latency=_LATENCY,
                            simulator=simulator) as session:  # fmt: skip
            yield from timed(session, _products(session, preset))


def _product_core(preset):
    """Processing engines of a preset, each with shared memory for its part, and a bus that does not limit them."""
    core, smem = CORE_PRESETS[preset], SmemParams(128 * 1024)
    tmau = core.tmau.replace(bus_bytes=64, max_outstanding=64, max_burst=16, smem=smem)
    return CoreParams(tmau, core.pe.replace(smem=smem))


def _products(session, preset):
    """A product whose rows are shared out to 1, 2 and 4 cores, from global memory to global memory; B is multicast."""
    m, k, n = _PRODUCTS[preset]
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-128, 128, shape, np.int8) for shape in ((m, k), (k, n)))
    pe = session.params.core.pe
    one = None
    for count in (1, 2, 4):
        session.clear()
        parts = [CoreProduct(part, b, MmType.S8S8, session.params.core, session.place) for part in np.split(a, count)]
        commands, stores = [], []
        for core, part in enumerate(parts):
            loads = [_move(session, move) for segment in (_A, _TABLE) for move in part.moves[segment]]
            # Operands of all parts lie at the same places, as their shapes are the same.
            shared = [_move(session, move) | {"cores": list(range(count))} for move in part.moves[_B]]
            commands.append((shared if core == 0 else []) + loads)
            stores.append([_move(session, move, store=True) for move in part.moves[_C]])
        loaded = [f"commands{core}" for core in range(count)]
        after = {f"instructions{core}": [f"segments{core}", f"pages{core}", *loaded] for core in range(count)}
        run = session.run(commands, programs=[part.program for part in parts], after=after)
        stored = session.run(stores)
        found = [session.global_memory.read(part.c_address, 4 * m * n // count).view(np.int32) for part in parts]
        if (np.concatenate(found).reshape(m, n) != a.astype(np.int32) @ b.astype(np.int32)).any():
            raise RuntimeError(f"the product of {count} cores is wrong")
        cycles = run.cycles + stored.cycles
        one = one or cycles
        limit = m * k * n // (pe.threads * pe.unit_bytes * count)
        yield Line(preset, f"product {m} x {k} x {n} on {count}, B read once", _LATENCY, limit, cycles,
                   f"{one / cycles:.2f} times", f">= {_SPEEDUPS[count]}", one >= _SPEEDUPS[count] * cycles,
                   note=f"{run.data_beats} bus words read")  # fmt: skip


def _move(session, move, **fields):
    """The command of a page move."""
    return move.command(session.descriptor(move.tmap), **fields)


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
