"""Measures the second-level cache behind one access unit, in exact cycles: hits, misses, latencies, prefetches.

Specification: docs/cluster.md, "L2".
"""

import numpy as np

from tilewright.golden.spec import LINE_BYTES, Opcode, Space
from tilewright.hw.cluster.l2.params import L2Params
from tilewright.hw.cluster.params import ClusterParams
from tilewright.hw.tmau.params import TMAU_PRESETS

from ..session.cluster import ClusterSession
from ..settings import changed
from .line import Line, share, timed

__all__ = ["measure_cache"]

_LATENCY = 100
#: Blocks that are copied back to back, of the cache's bytes one half; and blocks that wait for each other.
_STREAM, _CHAIN = 32, 16


def measure_cache(preset, settings=(), *, simulator="verilator"):
    """Yields every :class:`Line` of a preset with the simulation's cycles a second so far."""
    tmau = changed(TMAU_PRESETS[preset], settings)
    block = min(4096, tmau.smem.size_bytes // 2)
    cache = L2Params(bytes=max(1 << 14, 2 * _STREAM * block))
    params = changed(ClusterParams(1, tmau, cache), settings)
    with ClusterSession(params=params, simulator=simulator, latency=_LATENCY) as session:
        session.place(np.random.default_rng(1).integers(0, 256, 1 << 20, np.uint8))
        yield from timed(session, _streams(session, preset, block))
        yield from timed(session, _latencies(session, preset))
        yield from timed(session, _prefetches(session, preset, block))


def _copy(number, size, **fields):
    """A copy of the block of that number to shared memory."""
    return {"opcode": Opcode.COPY_BLOCK, "destination_space": Space.SHARED, "source": number * size, "size": size,
            "destination": number % 2 * size} | fields  # fmt: skip


def _cycles(session, commands):
    """From the first command to the last end."""
    (core,) = session.run([commands]).cores
    if any(stamp.error for stamp in core.commands):
        raise RuntimeError("a command of the benchmark ends with an error")
    return core.commands[-1].done - core.commands[0].accepted


def _streams(session, preset, block):
    """Blocks back to back: first none of their bytes is here, then all."""
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
    """A line that is not here, and then is, from the command to its end: a hit saves what memory takes."""
    session.flush()
    missed, hit = (_cycles(session, [_copy(0, LINE_BYTES)]) for _ in range(2))
    yield share(preset, "L2: a line from command to end, miss", _LATENCY, _LATENCY, missed, None)
    yield Line(preset, "L2: a line from command to end, hit", _LATENCY, missed - _LATENCY, hit, f"{hit} cycles",
               f"<= {missed - _LATENCY}", hit <= missed - _LATENCY)  # fmt: skip


def _prefetches(session, preset, block):
    """Blocks each of which is copied when the one before has ended: without, and each prefetched two copies before."""
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
