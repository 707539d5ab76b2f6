"""Replay on the RTL: cases in sessions of their hardware."""

from contextlib import contextmanager

from tilewright.errors import UsageError
from tilewright.golden import command_word, delivery_bits
from tilewright.hw.bus.axi4 import Response
from tilewright.spec import BARRIER, LaneLayout, Opcode, Space
from tilewright.spec.conv import ConvError
from tilewright.spec.pe import PE_REGISTERS, Operation, Put

from ..harness.records import READ_IDS, TMAU_SCRIPT_DEPTH
from ..session.cluster import ClusterSession
from ..session.core import Session
from ..session.events import ERRORS
from .commands import CaseOp, needed_words
from .conv_cases import conv_outcome
from .core_cases import core_outcome
from .fields import whole_words
from .golden import BARRIER_AT, arrivals, transfer_outcome
from .golden import run_case as run_on_golden
from .hardware import hardware_of, why_no_hardware
from .pe_cases import PeCase, ProgramResult, pe_outcome

__all__ = ["hardware", "open_backend", "place_memories", "run_case", "run_cluster_on_session", "run_conv_on_session",
           "run_core_on_session", "run_on_session", "why_not", "window_registers"]  # fmt: skip


def place_memories(session, gmem, smem, bus_bytes):
    """Fills the memories of a session; global memory answers with errors from its end on."""
    session.clear()
    gmem = whole_words(gmem, bus_bytes)
    session.global_memory.write(0, gmem)
    for memory in session.shared_memories:
        memory.write(0, smem)
    outside = len(gmem) < session.memory_bytes
    session.configure(errors=(len(gmem), session.memory_bytes - 1, Response.DECERR.value if outside else 0))


#: Reads of a register before pages come late: as long as a program's setup, about.
_DELAY = 60


def run_on_session(program, session):
    """Runs a :class:`PeProgram` on a ``Session`` of its processing engine, from a reset on.

    A HALT follows, so that all has been performed. Pages that come late are put into registers while the program runs.
    Returns a :class:`ProgramResult`.
    """
    if program.params != session.params.pe:
        raise ValueError(f"the program is for an engine of {program.params}, not {session.params.pe}")
    session.reset()
    session.shared_memory.write(0, program.smem)
    run = session.run(
        program=[*program.words, int(Operation.HALT)],
        segments=program.segments,
        pages=program.pages,
        registers=list(_late_accesses(program.late)) if program.late else (),
        after={"registers": ("segments", "pages")},
    )
    return ProgramResult(session.shared_memory.read(0, len(program.smem)), run.faults)


def _late_accesses(late):
    """Accesses to registers that write page entries, after some that do nothing: so the program may have to wait."""
    offsets = {register.name: register.offset for register in PE_REGISTERS}
    put = next(register for register in PE_REGISTERS if register.name == "put")
    yield from [(offsets["status"],)] * _DELAY
    for index, word in late.items():
        yield offsets["data0"], word & 0xFFFFFFFF
        yield offsets["data1"], word >> 32
        yield offsets["put"], put.format.pack(kind=Put.PAGE, index=index)


_CLEAR = 1 << 2 | 1  # in register ``control``: error record and counters
_DRAIN = 64  # cycles after which barriers are in memory


def window_registers(case):
    """What to write to registers of a core after a reset, so that it has the windows of a case."""
    listed = [case.windows.registers(), *(own.registers(number) for number, own in enumerate(case.processors))]
    return [(name, value) for registers in listed for name, value in registers.items() if value]


def run_cluster_on_session(case, session):
    """Runs a case on a ``ClusterSession``, one issue after the other; its :class:`Outcome`."""
    place_memories(session, case.global_contents(), case.smem.contents(), session.params.tmau.bus_bytes)
    session.run(registers=[window_registers(case)] * case.cores)
    errors, landed, cycles, words = [], [], 0, [0, 0]
    for command, spec, fields, refused in case.issues():
        if refused:
            errors.append(refused)
            landed.append(0)
            continue
        if command.opcode == CaseOp.ARRIVE:
            count, error = _arrive(session, command)
            errors.append(error)
            landed.append(count)
            continue
        word = command_word(**_descriptor(spec, session) | fields, opcode=command.opcode)
        word |= delivery_bits(command.receivers, command.source_core)
        run = session.run([[]] * command.core + [[word]])
        (stamp,) = run.cores[command.core].commands
        error, count = _found(session, command.core)
        errors.append(stamp.error or error)
        landed.append(count)
        cycles += stamp.done - stamp.accepted
        words[0] += run.data_beats + run.reducer_beats
        words[1] += run.write_beats
    gmem = session.global_memory.read(0, case.gmem.size).copy()
    smems = [memory.read(0, case.smem.size).copy() for memory in session.shared_memories]
    figures = {"cycles": cycles, "read_words": words[0], "write_words": words[1]}
    return transfer_outcome(case, next(filter(None, errors), None), landed, gmem, smems, **figures)


def _arrive(session, command):
    """Runs an ARRIVE; the arrivals that the barrier has counted, and the first error or None."""
    memory, fields = session.shared_memories[command.core], command.fields
    before = memory.read(BARRIER_AT, BARRIER.bytes).copy()
    cores, core = range(session.params.cores), command.core
    session.run(barriers=[[]] * core + [[("init", BARRIER_AT, fields["expected"])]])
    arrive = ("arrive", BARRIER_AT, fields["value"], False)
    session.run(barriers=[[(*arrive, core)] if fields["arriving"] >> number & 1 else [] for number in cores])
    error, _ = _found(session, core)
    counted = arrivals(memory.read(BARRIER_AT, BARRIER.bytes))
    memory.write(BARRIER_AT, before)
    return counted, error


def _found(session, issuer):
    """The error that the issuer has recorded, or else the first other core, or None; bytes that the issuer has counted.

    Clears both.
    """
    accesses = [("error",), ("bytes",), ("write_bytes",), ("control", _CLEAR)]
    run = session.run(registers=[accesses] * session.params.cores, drain=_DRAIN)
    answers = [[answer.data for answer in core.registers] for core in run.cores]
    codes = [error & 0xFF for error, *_ in [answers[issuer], *answers]]
    return ERRORS.get(next(filter(None, codes), None)), answers[issuer][1] + answers[issuer][2]


def run_conv_on_session(case, session):
    """Runs a :class:`ConvCase` on a ``Session`` of a core that is large enough; its :class:`Outcome`."""
    layer = case.layer
    run = session.run(jobs=[layer.word], preload=layer.smem)
    (end,) = run.jobs
    error = None if end.code == ConvError.NONE else end.code.name.lower()
    smem = session.shared_memory.read(0, len(layer.smem))
    return conv_outcome(case, error, smem, cycles=end.cycle - run.queued[0])


#: Cycles in which engines end what they have taken when a program has stopped.
_CORE_RTL_DRAIN = 10_000


def run_core_on_session(case, session):
    """Runs a :class:`CoreCase` on a ``Session`` of its parameters; its :class:`Outcome`."""
    place_memories(session, case.gmem, case.smem, session.params.tmau.bus_bytes)
    for name, value in case.windows.registers().items():
        if value:  # without the feature windows the registers are not there
            session.write_register("tmau", name, value)
    run = session.run_program(case.address, case.words, window=case.program_window, watchdog=case.watchdog)
    if run.record:
        session.run(registers=[("program", "status")], drain=_CORE_RTL_DRAIN)
    gmem = session.global_memory.read(0, len(case.gmem)).copy()
    smem = session.shared_memory.read(0, len(case.smem)).copy()
    return core_outcome(case, run.record, run.interrupt, gmem, smem)


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
        if not params.tmau:
            if params not in sessions:
                sessions[params] = Session(params=params, simulator=args.sim)
            if isinstance(case, PeCase):
                return pe_outcome(case, run_on_session(case.program, sessions[params]))
            return run_conv_on_session(case, sessions[params])
        if case.gmem.size > _MOST_MEMORY:
            raise UsageError(
                f"case {case.name!r}: gmem.bytes must be at most {_MOST_MEMORY} on rtl, not {case.gmem.size}"
            )
        if case.kind == "core":
            make, run_on = Session, run_core_on_session
        elif case.cores > 1:
            make, run_on = ClusterSession, run_cluster_on_session
        else:
            make, run_on = Session, run_case
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
    place_memories(session, case.global_contents(), case.smem.contents(), session.params.tmau.bus_bytes)
    windows = window_registers(case)
    if windows:
        session.run(registers=windows)
    commands, before = [], None
    for command, spec, fields, refused in case.issues():
        if not refused:
            # Tags of a run differ.
            tag = fields.get("tag", 0) + len(commands) % TMAU_SCRIPT_DEPTH
            more = {"opcode": command.opcode, "wait": command.wait and command is not before, "tag": tag}
            commands.append(_descriptor(spec, session) | fields | more)
        before = command
    wanted = {"shared": (0, case.smem.size), "memory": (0, case.gmem.size), "trace": True}
    runs = [session.run(commands[first : first + TMAU_SCRIPT_DEPTH], registers=_SUMS, after=_SUMS_LAST, **wanted)
            for first in range(0, len(commands) or 1, TMAU_SCRIPT_DEPTH)]  # fmt: skip
    endings = iter([stamp.error for run in runs for stamp in run.commands])
    errors = [refused or next(endings) or None for *_, refused in case.issues()]
    landed = _landed(case, session.params, errors, [answer.data for answer in runs[-1].registers])
    figures = _figures(case, runs, session.params.tmau)
    error = next(filter(None, errors), None)
    return transfer_outcome(case, error, landed, runs[-1].memory, [runs[-1].shared], **figures)


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
    to_global = [_writes_global(command) for command, *_ in case.issues()]
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
    for command, spec, fields, _ in case.issues():
        if spec is None or spec.refused is None:
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
