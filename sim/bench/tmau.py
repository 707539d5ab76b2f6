"""Measures the TMAU in exact cycles: latencies of a single transfer, and utilisation of the bus by many transfers.

Transfers with features that the hardware does not have are not measured.

Specification: docs/tmau.md, "Speed".
"""

import numpy as np

from tilewright.golden import TensorMap, limits
from tilewright.golden.tmau.machine import is_unsupported
from tilewright.golden.tmau.tile import footprint
from tilewright.hw.core.params import CoreParams
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.spec import BarrierOp, Opcode

from ..hdl.settings import changed
from ..session import Session
from .line import Line, share, timed
from .tmau_cases import BLOCK_BYTES, BOXES, FEW, LATENCIES, copy_cases, few_cases, steady_cases

__all__ = ["fill_memory", "measure", "run_steady"]

_LATENCY = 100  # cycles, unless a line names another latency


def measure(preset, settings=(), *, simulator="verilator"):
    """Yields every :class:`Line` of a preset with the simulation's cycles a second so far."""
    params = changed(TMAU_PRESETS[preset], settings)
    with Session(params=CoreParams(params), simulator=simulator, latency=_LATENCY) as session:
        fill_memory(session)
        for latency in LATENCIES:
            yield from timed(session, _latencies(session, preset, latency))
        for latency in LATENCIES[:2]:
            yield from timed(session, _steady(session, preset, latency))
        yield from timed(session, _copies(session, preset, _LATENCY))
        yield from timed(session, _few(session, preset, _LATENCY))
    # The bus stays busy only if the reads in flight outnumber the cycles of latency.
    deep = params.replace(max_outstanding=512, commands_in_flight=128)
    with Session(params=CoreParams(deep), simulator=simulator, latency=LATENCIES[2]) as session:
        fill_memory(session)
        yield from timed(session, _steady(session, f"{preset}, 512 in flight", LATENCIES[2]))


def fill_memory(session):
    """Fills global memory with random bytes."""
    rng = np.random.default_rng(1)
    session.place(rng.integers(0, 256, session.memory_bytes - 4096, np.uint8))


def _latencies(session, preset, latency):
    """Latencies of a single transfer: command to address, and data to barrier."""
    session.configure(latency=latency)
    session.reset()
    barrier = 0
    tmap = TensorMap(element="u8", size=(256, 64), stride=(256,), box=(64, 8), address=4096)
    session.run(barriers=[(BarrierOp.INIT, barrier, 1), (BarrierOp.ARRIVE, barrier, 1)])
    load = session.command(tmap, (0, 0), 1024, barrier=barrier)
    expect = (BarrierOp.EXPECT_TX, barrier, 64 * 8)

    # The transaction count makes the phase wait for the bytes; each phase needs an arrival of its own.
    miss = _phase(session, load, expect)
    hit = _phase(session, load, expect)
    trace = miss.trace
    fetch = trace.request_cycle[trace.request_id == 1]
    answer = trace.beat_cycle[trace.beat_id == 1]
    round_trip = int(answer[-1] - fetch[0])
    for name, got, limit in (
        ("command to first address, descriptor cached", hit.first_request(), 10),
        ("command to first address, descriptor missed", miss.first_request(), 10 + round_trip + 30),
        ("last data beat to barrier flip", int(hit.flips[-1][0] - hit.trace.beat_cycle[-1]), 7),
    ):
        yield Line(preset, name, latency, limit, got, f"{got} cycles", f"<= {limit}", got <= limit)


def _phase(session, load, expect):
    """One phase of the barrier: expect the bytes, arrive, load."""
    session.run(barriers=[expect])
    session.run(barriers=[(BarrierOp.ARRIVE, expect[1], 1)])
    return session.run([load], trace=True, drain=8)


def _steady(session, preset, latency):
    """Boxes back to back, from the end of the first to the end of the last."""
    session.configure(latency=latency)
    for case in steady_cases(session.params.smem.size_bytes):
        if not _is_unsupported(session, case):
            limit, measured, _ = run_steady(session, case)
            yield share(preset, case.name, latency, limit, measured, case.target)


def _is_unsupported(session, case):
    fields = {"opcode": Opcode.LOAD} | case.fields
    return is_unsupported(fields, case.tmap.pack(), session.params.tmau.features)


def run_steady(session, case):
    """Runs a ``Steady`` case: the limit and the cycles from the end of the first box on, and the ``Run``."""
    if _is_unsupported(session, case):
        raise ValueError(f"{case.name} needs features that the access unit does not have")
    commands = _commands(session, case)
    session.run(commands[:1])  # loads the descriptor into the cache
    result = _succeed(session, commands)
    offsets = case.fields.get("offsets", (0, 0, 0))
    limit = sum(_limit(case, coords, offsets, session.params.tmau) for coords in case.coords[1:])
    return limit, result.commands[-1].done - result.commands[0].done, result


def _commands(session, case):
    """A command for each box of a case, with the boxes side by side in shared memory."""
    places = session.params.smem.size_bytes // footprint(case.tmap)
    pitch = -(-footprint(case.tmap) // 128) * 128
    return [
        session.command(case.tmap, coords, pitch * (number % min(places, 8)) if places > 1 else 0, **case.fields)
        for number, coords in enumerate(case.coords)
    ]


def _few(session, preset, latency):
    """A few boxes, from the first command, whose descriptor is not cached, to the last completion."""
    session.configure(latency=latency)
    for case in few_cases(session.params.smem.size_bytes):
        session.reset()
        commands = _commands(session, case)[:FEW]
        measured = _succeed(session, commands).span
        limit = sum(_limit(case, coords, (0, 0, 0), session.params.tmau) for coords in case.coords[:FEW])
        yield Line(preset, f"{FEW} boxes: {case.name}", latency, limit, measured, f"{measured} cycles", "none", True)


def _succeed(session, commands):
    """Runs commands; raises an error if one of them fails, because a refused command would look fast."""
    result = session.run(commands)
    if result.error:
        raise RuntimeError(f"a command of the benchmark ended with {result.error!r}")
    return result


def _limit(case, coords, offsets, params):
    """The fewest cycles of a box: each needed bus word is transferred once; shared memory accepts a line a cycle."""
    least = limits(case.tmap, coords, params.bus_bytes, offsets=offsets)
    return max(least.words, least.lines)


def _copies(session, preset, latency):
    """Blocks back to back, from the end of the first to the end of the last; the limit is one bus word a cycle."""
    session.configure(latency=latency)
    places = session.params.smem.size_bytes // (2 * BLOCK_BYTES)
    for case in copy_cases():
        command = {"opcode": Opcode.COPY_BLOCK, "size": BLOCK_BYTES} | case.fields
        if is_unsupported(command, None, session.params.tmau.features):
            continue
        commands = []
        for number in range(BOXES):
            source = BLOCK_BYTES * (number % places)
            commands.append(command | {"source": source, "destination": BLOCK_BYTES * places + source})
        result = _succeed(session, commands)
        measured = result.commands[-1].done - result.commands[0].done
        limit = (BOXES - 1) * BLOCK_BYTES // session.params.tmau.bus_bytes
        yield share(preset, case.name, latency, limit, measured, case.target)
