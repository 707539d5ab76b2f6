"""Replay on the RTL."""

from argparse import ArgumentTypeError
from contextlib import contextmanager

from tilewright.golden import limits, tx_bytes
from tilewright.golden.tmau.tile import footprint
from tilewright.hw.bus.axi4 import Response
from tilewright.hw.smem.params import SmemParams
from tilewright.hw.tmau.params import PRESETS

from .build import SIMULATORS
from .memory_model import MAX_LATENCY, MIN_LATENCY
from .records import SCRIPT_DEPTH
from .replay_golden import Outcome, result_record
from .session import Session
from .usage import UsageError

__all__ = ["configure", "open_backend", "run_case"]

_LEAST_MEMORY = 1 << 16  # bytes


def configure(parser):
    """Adds the arguments that only matter on the RTL."""
    parser.add_argument("--preset", choices=list(PRESETS), default="default", help="configuration of the hardware")
    parser.add_argument("--latency", type=_latency, default=100, help="cycles from a read address to its data")
    parser.add_argument("--stall", type=_stall, default=0.0, help="probability of a pause before a transfer")
    parser.add_argument("--sim", choices=SIMULATORS, default=SIMULATORS[0], help="simulator")


@contextmanager
def open_backend(args):
    """A replay backend: yields a callable that takes a :class:`cases.Case` and returns an :class:`Outcome`.

    A session serves all cases whose memories fit it.
    """
    sessions = {}

    def run(case):
        params = _params(case, args.preset)
        # A power of two, so that few models serve many cases.
        memory_bytes = max(1 << (case.gmem.size - 1).bit_length(), _LEAST_MEMORY)
        key = params, memory_bytes
        if key not in sessions:
            sessions[key] = Session(
                params=params, simulator=args.sim, latency=args.latency, stall=args.stall, memory_bytes=memory_bytes
            )
        return run_case(case, sessions[key])

    try:
        yield run
    finally:
        for session in sessions.values():
            session.close()


def run_case(case, session):
    """Runs a case that is not to be skipped. What software refuses is not issued."""
    _prepare(case, session)
    bus_bytes, addr_width = session.params.bus_bytes, session.params.addr_width
    outcomes, commands, limit_words = [], [], 0
    for command in case.commands:
        spec = case.maps[command.map]
        for number, address in enumerate(command.addresses):
            if spec.word is None:
                outcomes.append((0, spec.refused))
                continue
            commands.append(session.command(spec.word, command.coords, address, wait=command.wait and number == 0))
            outcomes.append((tx_bytes(spec.tmap), None))
            if spec.refused is None:
                coords = command.coords[: spec.tmap.rank]
                limit_words += limits(spec.tmap, coords, bus_bytes, address, addr_width).words
    runs = [session.run(commands[first : first + SCRIPT_DEPTH], trace=True)
            for first in range(0, len(commands), SCRIPT_DEPTH)]  # fmt: skip
    errors = iter([stamp.error for run in runs for stamp in run.commands])
    errors = [refused or next(errors) or None for _, refused in outcomes]
    landed = [0 if error else count for (count, _), error in zip(outcomes, errors, strict=True)]
    counted = session.read_register("bytes")
    if not any(errors) and counted != sum(landed) % (1 << 32):
        landed = [counted]  # the hardware moved something else, which must show
    gmem = session.global_memory.read(0, case.gmem.size)
    smem = session.shared_memory.read(0, case.smem.size).copy()
    record = result_record(case, next(filter(None, errors), None), landed, gmem, smem)
    return Outcome(record | _figures(runs, limit_words), {"gmem": gmem, "smem": smem})


def _prepare(case, session):
    """Puts the memories of the case in place; global memory answers with errors from its end on."""
    session.clear()
    session.global_memory.write(0, case.gmem.contents())
    session.shared_memory.write(0, case.smem.contents())
    bus_bytes = session.params.bus_bytes
    end = -(-case.gmem.size // bus_bytes) * bus_bytes
    outside = end < session.memory_bytes
    session.configure(errors=(end, session.memory_bytes - 1, Response.DECERR.value if outside else 0))


def _figures(runs, limit_words):
    """Fields of the result record that only hardware has."""
    cycles = sum(run.span for run in runs)
    busy = sum(_busy_cycles(run) for run in runs)
    return {
        "cycles": cycles,
        "first_request": runs[0].first_request() if runs else None,
        "read_words": sum(run.data_beats for run in runs),
        "write_words": 0,
        "limit_words": limit_words,
        "utilisation": round(limit_words / busy, 4) if busy else None,
    }


def _busy_cycles(run):
    """Cycles from the first bus word of data to the last."""
    cycles = run.trace.beat_cycle[run.trace.beat_id == 0]
    return int(cycles[-1] - cycles[0]) + 1 if len(cycles) else 0


def _params(case, preset):
    """The preset, if the case cannot see that its shared memory is larger; otherwise with that of the case."""
    params = PRESETS[preset]
    size = case.smem.size
    last = max((address + footprint(case.maps[command.map].tmap)
                for command in case.commands for address in command.addresses), default=0)  # fmt: skip
    if last <= size <= params.smem.size_bytes:
        return params
    try:
        return params.replace(smem=SmemParams(size))
    except ValueError as error:
        raise UsageError(f"case {case.name!r}: smem.bytes: {error}") from None


def _latency(text):
    return _between(text, int, MIN_LATENCY, MAX_LATENCY, "latency")


def _stall(text):
    return _between(text, float, 0.0, 0.99, "stall")


def _between(text, kind, low, high, what):
    try:
        value = kind(text)
    except ValueError:
        value = None
    if value is None or not low <= value <= high:
        raise ArgumentTypeError(f"{what} must be {low} to {high}, not {text!r}")
    return value
