"""Replay cases of the command processor on hardware."""

from tilewright.hw.bus.axi4 import Response
from tilewright.hw.conv.params import ConvUnitParams
from tilewright.hw.core import CORE_PRESETS, ProgramParams
from tilewright.hw.smem.params import SmemParams

from .core_cases import core_outcome

__all__ = ["core_params", "run_core_on_session"]

#: Cycles in which engines end what they have taken when a program has stopped.
_DRAIN = 10_000


def core_params(case, preset):
    """What hardware to run a :class:`CoreCase` on, as CoreParams: the case's engines, and the TMAU of a preset."""
    base, smem = CORE_PRESETS[preset], case.pe.smem
    params = base.replace(tmau=base.tmau.replace(smem=smem), pe=case.pe, program=ProgramParams())
    return params.with_conv(ConvUnitParams(case.conv, SmemParams(smem.size_bytes))) if case.conv else params


def run_core_on_session(case, session):
    """Runs a :class:`CoreCase` on a ``CoreSession`` of its parameters; its :class:`Outcome`."""
    session.clear()
    session.global_memory.write(0, case.gmem)
    session.shared_memory.write(0, case.smem)
    end = -(-len(case.gmem) // session.params.tmau.bus_bytes) * session.params.tmau.bus_bytes
    outside = end < session.memory_bytes
    session.configure(errors=(end, session.memory_bytes - 1, Response.DECERR.value if outside else 0))
    for name, value in case.windows.registers().items():
        session.write_register("tmau", name, value)
    run = session.run_program(case.address, case.words, window=case.program_window, watchdog=case.watchdog)
    if run.record:
        session.run(registers=[("program", "status")], drain=_DRAIN)
    gmem = session.global_memory.read(0, len(case.gmem)).copy()
    smem = session.shared_memory.read(0, len(case.smem)).copy()
    return core_outcome(case, run.record, run.interrupt, gmem, smem)
