"""Replay cases of the command processor on hardware."""

from .core_cases import core_outcome
from .placing import place_memories

__all__ = ["run_core_on_session"]

#: Cycles in which engines end what they have taken when a program has stopped.
_DRAIN = 10_000


def run_core_on_session(case, session):
    """Runs a :class:`CoreCase` on a ``CoreSession`` of its parameters; its :class:`Outcome`."""
    place_memories(session, case.gmem, case.smem, session.params.tmau.bus_bytes)
    for name, value in case.windows.registers().items():
        if value:  # without the feature windows the registers are not there
            session.write_register("tmau", name, value)
    run = session.run_program(case.address, case.words, window=case.program_window, watchdog=case.watchdog)
    if run.record:
        session.run(registers=[("program", "status")], drain=_DRAIN)
    gmem = session.global_memory.read(0, len(case.gmem)).copy()
    smem = session.shared_memory.read(0, len(case.smem)).copy()
    return core_outcome(case, run.record, run.interrupt, gmem, smem)
