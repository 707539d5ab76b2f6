"""Replay on the RTL of cases of several cores."""

from tilewright.golden import command_word, delivery_bits

from ..session.run import ERRORS
from .golden import result_record
from .outcome import Outcome
from .placing import place_memories

__all__ = ["run_cluster_on_session", "window_registers"]

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
    for command in case.commands:
        spec = case.maps.get(command.map)
        for fields in command.issues:
            if spec and spec.word is None:  # software refuses it
                errors.append(spec.refused)
                landed.append(0)
                continue
            at = {"descriptor": session.descriptor(spec.word) if spec.at is None else spec.at} if spec else {}
            word = command_word(**at | fields, opcode=command.opcode)
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
    record = result_record(case, next(filter(None, errors), None), landed, gmem, *smems)
    figures = {"cycles": cycles, "read_words": words[0], "write_words": words[1]}
    memories = {"gmem": gmem} | {f"smem{core}": smem for core, smem in enumerate(smems)}
    return Outcome(record | figures, memories)


def _found(session, issuer):
    """The error that the issuer has recorded, or else the first other core, or None; bytes that the issuer has counted.

    Clears both.
    """
    accesses = [("error",), ("bytes",), ("write_bytes",), ("control", _CLEAR)]
    run = session.run(registers=[accesses] * session.params.cores, drain=_DRAIN)
    answers = [[answer.data for answer in core.registers] for core in run.cores]
    codes = [error & 0xFF for error, *_ in [answers[issuer], *answers]]
    return ERRORS.get(next(filter(None, codes), None)), answers[issuer][1] + answers[issuer][2]
