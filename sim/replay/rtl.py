"""Replay on the RTL."""

from contextlib import contextmanager

from tilewright.golden.spec import LaneLayout, Opcode, Space

from ..harness.records import READ_IDS, TMAU_SCRIPT_DEPTH
from ..session.cluster import ClusterSession
from ..session.conv import ConvSession
from ..session.core import CoreSession
from ..session.pe import PeSession
from ..session.tmau import TmauSession
from ..usage import UsageError
from .cluster_rtl import run_cluster_on_session, window_registers
from .command_words import needed_words
from .conv_rtl import run_conv_on_session
from .core_rtl import run_core_on_session
from .golden import result_record
from .golden import run_case as run_on_golden
from .hardware import hardware_of, why_no_hardware
from .outcome import Outcome
from .pe.cases import PeCase
from .pe.golden import pe_outcome
from .pe.rtl import run_on_session
from .placing import place_memories

__all__ = ["hardware", "open_backend", "run_case", "why_not"]

_LEAST_MEMORY = 16 << 20  # bytes; that of a session, so that they share a model
_MOST_MEMORY = 256 << 20  # bytes; simulators hand it over as text
_SUMS = [("bytes",), ("write_bytes",)]  # registers: what landed in shared and in global memory, up to now
_SUMS_LAST = {"registers": ["commands"]}


def hardware(case, args):
    """Parameters of the hardware that a case runs on."""
    return hardware_of(case, args.preset)


def why_not(case, args):
    """Why a case cannot run on hardware, as a sentence, or None."""
    return why_no_hardware(case, args.preset)


@contextmanager
def open_backend(args):
    """A replay backend: yields a callable that takes a case and returns an :class:`Outcome`.

    A session serves all cases whose memories fit it, or whose engine is the same.
    """
    sessions = {}

    def run(case):
        params = hardware(case, args)
        if isinstance(case, PeCase):
            if params not in sessions:
                sessions[params] = PeSession(params=params, simulator=args.sim)
            return pe_outcome(case, run_on_session(case.program, sessions[params]))
        if case.kind == "conv":
            if params not in sessions:
                sessions[params] = ConvSession(params=params, simulator=args.sim)
            return run_conv_on_session(case, sessions[params])
        if case.gmem.size > _MOST_MEMORY:
            raise UsageError(
                f"case {case.name!r}: gmem.bytes must be at most {_MOST_MEMORY} on rtl, not {case.gmem.size}"
            )
        if case.kind == "core":
            make, run_on = CoreSession, run_core_on_session
        elif case.cores > 1:
            make, run_on = ClusterSession, run_cluster_on_session
        else:
            make, run_on = TmauSession, run_case
        # Of few sizes, so that few models serve many cases.
        memory_bytes = max(1 << (case.gmem.size - 1).bit_length(), _LEAST_MEMORY)
        key = params, memory_bytes
        if key not in sessions:
            sessions[key] = make(
                params=params, simulator=args.sim, latency=args.latency, stall=args.stall, memory_bytes=memory_bytes
            )
        return run_on(case, sessions[key])

    try:
        yield run
    finally:
        for session in sessions.values():
            session.close()


def run_case(case, session):
    """Runs a case. What software refuses is not issued.

    Hardware counts bytes in sums: ``tx_bytes`` are golden's if the sums agree, and otherwise the sums.
    """
    place_memories(session, case.global_contents(), case.smem.contents(), session.params.bus_bytes)
    windows = window_registers(case)
    if windows:
        session.run(registers=windows)
    refusals, commands = [], []
    for command in case.commands:
        spec = case.maps.get(command.map)
        for number, fields in enumerate(command.issues):
            refusals.append(spec.refused if spec and spec.word is None else None)
            if refusals[-1] is None:
                at = _descriptor(spec, session)
                # Tags of a run differ.
                tag = fields.get("tag", 0) + len(commands) % TMAU_SCRIPT_DEPTH
                commands.append(
                    at | fields | {"opcode": command.opcode, "wait": command.wait and number == 0, "tag": tag}
                )
    wanted = {"shared": (0, case.smem.size), "memory": (0, case.gmem.size), "trace": True}
    runs = [session.run(commands[first : first + TMAU_SCRIPT_DEPTH], registers=_SUMS, after=_SUMS_LAST, **wanted)
            for first in range(0, len(commands) or 1, TMAU_SCRIPT_DEPTH)]  # fmt: skip
    endings = iter([stamp.error for run in runs for stamp in run.commands])
    errors = [refused or next(endings) or None for refused in refusals]
    landed = _landed(case, session.params, errors, [answer.data for answer in runs[-1].registers])
    gmem, smem = runs[-1].memory, runs[-1].shared
    record = result_record(case, next(filter(None, errors), None), landed, gmem, smem)
    return Outcome(record | _figures(case, runs, session.params), {"gmem": gmem, "smem": smem})


def _descriptor(spec, session):
    """The field of a command that says where its descriptor is."""
    if spec is None:
        return {}
    return {"descriptor": session.descriptor(spec.word) if spec.at is None else spec.at}


def _landed(case, params, errors, counted):
    """Bytes of each issue, or the hardware's sums into shared and global memory, ``counted``, if they are others."""
    golden = run_on_golden(case, params).record["tx_bytes"]
    moved = [0 if error else count for count, error in zip(golden, errors, strict=True)]
    if any(errors) or any(command.opcode == Opcode.REPLACE for command in case.commands):
        return moved
    to_global = [_writes_global(command) for command in case.commands for _ in command.issues]
    sums = [sum(count for count, side in zip(moved, to_global, strict=True) if side == wanted) % (1 << 32)
            for wanted in (False, True)]  # fmt: skip
    return moved if counted == sums else counted


def _writes_global(command):
    """Whether the bytes of a command land in global memory."""
    if command.opcode == Opcode.COPY_BLOCK:
        return command.fields["destination_space"] == Space.GLOBAL
    if command.opcode == Opcode.LANES:
        return command.fields["destination_layout"] == LaneLayout.GLOBAL
    return command.opcode in (Opcode.STORE, Opcode.REDUCE)


def _figures(case, runs, params):
    """Fields of the result record that only hardware has."""
    reads = writes = 0
    for command in case.commands:
        spec = case.maps.get(command.map)
        if spec is None or spec.refused is None:
            for fields in command.issues:
                words = needed_words(command.opcode, spec and spec.tmap, fields, params.bus_bytes, params.addr_width)
                reads, writes = reads + words[0], writes + words[1]
    busy = sum(_busy_cycles(run) for run in runs)
    return {
        "cycles": sum(run.span for run in runs),
        "first_request": runs[0].first_request() if runs[0].commands else None,
        "read_words": sum(run.data_beats + run.reducer_beats for run in runs),
        "write_words": sum(run.write_beats for run in runs),
        "limit_words": reads + writes,
        "utilisation": round(max(reads, writes) / busy, 4) if busy else None,
    }


def _busy_cycles(run):
    """Cycles from the first bus word of data, read or written, to the last."""
    is_data = run.trace.beat_id != READ_IDS["descriptor"]
    cycles = [*run.trace.beat_cycle[is_data], *run.trace.write_beat_cycle]
    return int(max(cycles) - min(cycles)) + 1 if cycles else 0
