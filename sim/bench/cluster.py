"""Measures clusters in exact cycles: the second-level cache, multicast, use of the bus, and shared products.

Specification: docs/cluster.md, "L2".
"""

import numpy as np

from tilewright.golden import TensorMap
from tilewright.hw.cluster.l2.params import L2Params
from tilewright.hw.cluster.params import ClusterParams
from tilewright.hw.core import CORE_PRESETS, CoreParams
from tilewright.hw.smem.params import SmemParams
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.spec import LINE_BYTES, Opcode, Space
from tilewright.spec.pe import MmType

from ..hdl.settings import changed
from ..session.cluster import ClusterSession
from ..session.products import run_product
from .line import Line, share, timed

__all__ = ["PRODUCT", "measure", "measure_cache", "product_cluster"]

_LATENCY = 100
#: Number of blocks that are copied back to back, which fill half of the cache; and of blocks that wait for each other.
_STREAM, _CHAIN = 32, 16


def measure_cache(preset, settings=(), *, simulator="verilator"):
    """Yields every :class:`Line` of a preset with the simulation's cycles a second so far."""
    tmau = changed(TMAU_PRESETS[preset], settings)
    block = min(4096, tmau.smem.size_bytes // 2)
    cache = L2Params(bytes=max(1 << 14, 2 * _STREAM * block))
    params = changed(ClusterParams(1, CoreParams(tmau), cache), settings)
    with ClusterSession(params=params, simulator=simulator, latency=_LATENCY) as session:
        session.place(np.random.default_rng(1).integers(0, 256, 1 << 20, np.uint8))
        yield from timed(session, _streams(session, preset, block))
        yield from timed(session, _latencies(session, preset))
        yield from timed(session, _prefetches(session, preset, block))


def _copy(number, size, **fields):
    """A copy of block ``number`` to shared memory."""
    return {"opcode": Opcode.COPY_BLOCK, "destination_space": Space.SHARED, "source": number * size, "size": size,
            "destination": number % 2 * size} | fields  # fmt: skip


def _cycles(session, commands):
    """Cycles from the first command to the last end."""
    (core,) = session.run([commands]).cores
    if any(stamp.error for stamp in core.commands):
        raise RuntimeError("a command of the benchmark ends with an error")
    return core.commands[-1].done - core.commands[0].accepted


def _streams(session, preset, block):
    """Blocks back to back: first none of their bytes are in the cache, then all."""
    commands = [_copy(number, block) for number in range(_STREAM)]
    words = _STREAM * block // session.params.tmau.bus_bytes
    session.flush()
    for name, target in (("misses", 0.9), ("hits", 0.95)):
        before = session.cache_registers()
        cycles = _cycles(session, commands)
        after = session.cache_registers()
        counters = {kind: after[kind] - before[kind] for kind in ("hits", "misses", "evictions")}
        yield share(preset, f"L2: blocks of {block} bytes, {name}", _LATENCY, words, cycles, target, **counters)


def _latencies(session, preset):
    """A line that misses, then hits, from the command to its end: a hit saves the latency of the memory."""
    session.flush()
    missed, hit = (_cycles(session, [_copy(0, LINE_BYTES)]) for _ in range(2))
    yield share(preset, "L2: a line from command to end, miss", _LATENCY, _LATENCY, missed, None)
    yield Line(preset, "L2: a line from command to end, hit", _LATENCY, missed - _LATENCY, hit, f"{hit} cycles",
               f"<= {missed - _LATENCY}", hit <= missed - _LATENCY)  # fmt: skip


def _prefetches(session, preset, block):
    """Blocks that are copied one after the end of another: without prefetch, and prefetched two copies ahead."""
    copies = [_copy(number, block, wait=True) for number in range(_CHAIN)]
    ahead = [{"opcode": Opcode.PREFETCH_BLOCK, "source": number * block, "size": block} for number in range(_CHAIN)]
    pairs = [
        command for pair in zip(copies, ahead[2:] + [{"opcode": Opcode.COMMIT}] * 2, strict=True) for command in pair
    ]
    session.flush()
    without = _cycles(session, copies)
    session.flush()
    prefetched = _cycles(session, ahead[:2] + pairs)
    gain = without / prefetched
    yield Line(preset, f"L2: {_CHAIN} copies one after the other, prefetched", _LATENCY, without, prefetched,
               f"{gain:.2f} times", "> 1", gain > 1)  # fmt: skip


_CORES = 4
#: Boxes that a core loads back to back.
_BOXES = 64
#: M, K and N of the product that is divided among cores, the presets on which it is measured, and the target speed-up
#: by number of cores.
PRODUCT = (64, 256, 64)
_PRODUCT_PRESETS = ("unit",)
_SPEEDUPS = {1: 1, 2: 1.95, 4: 3.8}
#: Bytes of a row of a box, and its most rows.
_ROW, _MOST_ROWS = 256, 16


def measure(preset, settings=(), *, simulator="verilator"):
    """Yields every :class:`Line` of a preset with the simulation's cycles a second so far."""
    params = changed(ClusterParams(_CORES, CoreParams(TMAU_PRESETS[preset])), settings)
    with ClusterSession(params=params, simulator=simulator, latency=_LATENCY) as session:
        session.place(np.random.default_rng(1).integers(0, 256, session.memory_bytes - 4096, np.uint8))
        yield from timed(session, _multicasts(session, preset))
        yield from timed(session, _cluster_streams(session, preset))
    yield from measure_cache(preset, settings, simulator=simulator)
    if preset in _PRODUCT_PRESETS:
        params = changed(product_cluster(preset), settings)
        with ClusterSession(params=params, simulator=simulator, latency=_LATENCY) as session:
            yield from timed(session, _products(session, preset))


def product_cluster(preset):
    """ClusterParams with a bus of 64 bytes, whose cores of a preset can hold the whole product."""
    core, smem = CORE_PRESETS[preset], SmemParams(64 * 1024)
    tmau = core.tmau.replace(bus_bytes=64, max_outstanding=64, max_burst=16, smem=smem)
    return ClusterParams(_CORES, CoreParams(tmau, core.pe.replace(smem=smem)))


def _products(session, preset):
    """A product whose rows are divided among 1, 2 and 4 cores, from global memory to global memory."""
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
    """Rows of a box, so that two boxes fit half of shared memory."""
    return min(_MOST_ROWS, session.params.smem.size_bytes // (4 * _ROW))


def _boxes(session, core, **fields):
    """Loads of the boxes of a core's part of an image."""
    rows = _rows(session)
    tmap = TensorMap(element="u8", size=(_ROW, _CORES * _BOXES * rows), stride=(_ROW,), box=(_ROW, rows), address=0)
    slots = session.params.smem.size_bytes // (2 * _ROW * rows)
    return [
        session.command(tmap, (0, rows * (_BOXES * core + box)), _ROW * rows * (box % slots), **fields)
        for box in range(_BOXES)
    ]


def _run(session, commands):
    """Runs commands with their descriptors in the caches."""
    session.run([listed[:1] for listed in commands])
    run = session.run(commands)
    if any(stamp.error for core in run.cores for stamp in core.commands):
        raise RuntimeError(f"a command of the benchmark ends with an error: {run!r}")
    return run


def _multicasts(session, preset):
    """One core loads for 1, 2 and 4 cores, whose cycles are those for 1 core; and each core loads for itself."""
    one = None
    for count in (1, 2, 4):
        run = _run(session, [_boxes(session, 0, cores=list(range(count)))])
        cycles = run.cores[0].commands[-1].done - run.cores[0].commands[0].accepted
        one = one or cycles
        delivered, read = count * _BOXES * _ROW * _rows(session), run.data_beats * session.params.tmau.bus_bytes
        extra = cycles - one
        yield Line(preset, f"multicast to {count}: cycles", _LATENCY, one, cycles, f"{extra} extra", "<= 0", extra <= 0,
                   note=f"{delivered / cycles:.1f} bytes delivered a cycle")  # fmt: skip
        if count > 1:
            run = _run(session, [_boxes(session, 0)] * count)
            first = min(core.commands[0].accepted for core in run.cores[:count])
            separate = max(core.commands[-1].done for core in run.cores[:count]) - first
            yield Line(preset, f"separate loads by {count}: cycles", _LATENCY, one, separate,
                       f"{separate / cycles:.2f} times", "none", True,
                       note="of the boxes that a multicast delivers")  # fmt: skip
        yield Line(preset, f"multicast to {count}: bytes read", _LATENCY, delivered // count, read,
                   f"1/{delivered / read:g}", f"<= 1/{count}", read * count <= delivered)  # fmt: skip


def _cluster_streams(session, preset):
    """One core alone and all cores at once: utilisation of the bus, and how evenly the cores share it."""
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
