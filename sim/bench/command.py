"""``tilewright bench``: measures both engines in exact cycles and compares with their limits and targets."""

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np

from tilewright.golden import TensorMap, limits
from tilewright.golden.spec import BarrierOp, Opcode
from tilewright.golden.tmau.tile import footprint
from tilewright.hw.tmau.params import TMAU_PRESETS

from ..results import record
from ..session import TmauSession
from .line import HEAD, Line, row, share
from .pe import measure_products
from .tmau_cases import BLOCK_BYTES, BOXES, LATENCIES, copy_cases, steady_cases

__all__ = ["configure", "measure", "run"]

_LATENCY = 100  # cycles, where a line does not name another
_OUTPUT = Path("build/bench.json")


def configure(parser):
    """Options of the command."""
    parser.add_argument("--preset", choices=sorted(TMAU_PRESETS), help="one preset instead of default and ecp5")
    parser.add_argument("--engine", choices=list(_ENGINES), help="one engine instead of both")
    parser.add_argument("--sim", choices=("verilator", "icarus"), default="verilator", help="simulator")


def run(args):
    """Prints the table and leaves it as JSON; the status is 0 whether or not targets are met: the table says it."""
    presets = [args.preset] if args.preset else ["default", "ecp5"]
    engines = [args.engine] if args.engine else list(_ENGINES)
    lines, speeds = [], []
    print(HEAD)
    for engine in engines:
        for preset in presets:
            for line, speed in _ENGINES[engine](preset, simulator=args.sim):
                lines.append(line)
                speeds.append(speed)
                print(row(line), flush=True)
    missed = [line for line in lines if not line.met]
    _write([asdict(line) for line in lines])
    if not args.engine:
        record("bench", lines=len(lines), missed=len(missed), speed=round(np.median(speeds)))
    print(f"\n{len(lines)} lines, {len(missed)} below target; {np.median(speeds):,.0f} simulated cycles a second")
    for line in missed:
        place = line.name if line.latency is None else f"{line.name} at latency {line.latency}"
        causes = "".join(f"; {name} {count}" for name, count in line.counters.items() if count)
        print(f"  below target: {line.preset}: {place}: {line.figure}, not {line.target}{causes}")
    print(_OUTPUT)
    return 0


def measure(preset, *, simulator="verilator"):
    """Yields every :class:`Line` of a preset with the simulation's cycles a second so far."""
    params = TMAU_PRESETS[preset]
    with TmauSession(params=params, simulator=simulator, latency=_LATENCY) as session:
        _fill_memory(session)
        for latency in LATENCIES:
            yield from _timed(session, _latencies(session, preset, latency))
        for latency in LATENCIES[:2]:
            yield from _timed(session, _steady(session, preset, latency))
        yield from _timed(session, _copies(session, preset, _LATENCY))
    # The bus stays busy only while more reads are in flight than the memory takes cycles.
    deep = params.replace(max_outstanding=512, commands_in_flight=128)
    with TmauSession(params=deep, simulator=simulator, latency=LATENCIES[2]) as session:
        _fill_memory(session)
        yield from _timed(session, _steady(session, f"{preset}, 512 in flight", LATENCIES[2]))


#: What measures each engine: yields lines of a preset with the simulation's cycles a second so far.
_ENGINES = {"tmau": measure, "pe": measure_products}


def _timed(session, lines):
    for line in lines:
        yield line, session.simulation.cycles / max(session.simulation.seconds, 1e-9)


def _fill_memory(session):
    rng = np.random.default_rng(1)
    session.place(rng.integers(0, 256, session.memory_bytes - 4096, np.uint8))


def _latencies(session, preset, latency):
    """Command to address, and data to barrier, of a transfer by itself."""
    session.configure(latency=latency)
    session.reset()
    barrier = 0
    tmap = TensorMap(element="u8", size=(256, 64), stride=(256,), box=(64, 8), address=4096)
    session.run(barriers=[(BarrierOp.INIT, barrier, 1), (BarrierOp.ARRIVE, barrier, 1)])
    load = session.command(tmap, (0, 0), 1024, barrier=barrier)
    expect = (BarrierOp.EXPECT_TX, barrier, 64 * 8)

    # The transaction count makes the phase wait for the bytes; its arrival comes with the init of each phase.
    miss = _phase(session, load, expect)
    hit = _phase(session, load, expect)
    trace = miss.trace
    fetch = trace.request_cycle[trace.request_id == 1]
    answer = trace.beat_cycle[trace.beat_id == 1]
    round_trip = int(answer[-1] - fetch[0])
    for name, got, limit in (
        ("command to first address, descriptor cached", hit.first_request(), 6),
        ("command to first address, descriptor missed", miss.first_request(), 6 + round_trip + 4),
        ("last data beat to barrier flip", int(hit.flips[-1][0] - hit.trace.beat_cycle[-1]), 5),
    ):
        yield Line(preset, name, latency, limit, got, f"{got} cycles", f"<= {limit}", got <= limit)


def _phase(session, load, expect):
    """One phase of the barrier: expect the bytes, arrive, load."""
    session.run(barriers=[expect])
    session.run(barriers=[(BarrierOp.ARRIVE, expect[1], 1)])
    return session.run([load], trace=True, drain=8)


def _steady(session, preset, latency):
    """Boxes back to back: from the end of the first to the end of the last."""
    session.configure(latency=latency)
    for case in steady_cases():
        room = session.params.smem.size_bytes // footprint(case.tmap)
        pitch = -(-footprint(case.tmap) // 128) * 128
        commands = [
            session.command(case.tmap, coords, pitch * (number % min(room, 8)) if room > 1 else 0, **case.fields)
            for number, coords in enumerate(case.coords)
        ]
        session.run(commands[:1])  # brings the descriptor into the cache
        result = _succeed(session, commands)
        measured = result.commands[-1].done - result.commands[0].done
        offsets = case.fields.get("offsets", (0, 0, 0))
        limit = sum(_limit(case, coords, offsets, session.params) for coords in case.coords[1:])
        yield share(preset, case.name, latency, limit, measured, case.target)


def _succeed(session, commands):
    """Runs commands, none of which may end with an error: a refused one would look fast."""
    result = session.run(commands)
    if result.error:
        raise RuntimeError(f"a command of the benchmark ended with {result.error!r}")
    return result


def _limit(case, coords, offsets, params):
    """Cycles that a box must take: each needed bus word crosses once, and shared memory takes a line a cycle."""
    least = limits(case.tmap, coords, params.bus_bytes, offsets=offsets)
    return max(least.words, least.lines)


def _copies(session, preset, latency):
    """Blocks back to back, from the end of the first to the end of the last; the limit is one bus word a cycle."""
    session.configure(latency=latency)
    room = session.params.smem.size_bytes // (2 * BLOCK_BYTES)
    for case in copy_cases():
        command = {"opcode": Opcode.COPY_BLOCK, "size": BLOCK_BYTES} | case.fields
        commands = []
        for number in range(BOXES):
            place = {"source": BLOCK_BYTES * (number % room), "destination": BLOCK_BYTES * (room + number % room)}
            commands.append(command | place)
        result = _succeed(session, commands)
        measured = result.commands[-1].done - result.commands[0].done
        limit = (BOXES - 1) * BLOCK_BYTES // session.params.bus_bytes
        yield share(preset, case.name, latency, limit, measured, None)


def _write(lines):
    """Replaces the JSON file as a whole."""
    _OUTPUT.parent.mkdir(parents=True, exist_ok=True)
    temporary = _OUTPUT.with_suffix(".tmp")
    temporary.write_text(json.dumps({"boxes": BOXES, "lines": lines}, indent=1))
    temporary.replace(_OUTPUT)
