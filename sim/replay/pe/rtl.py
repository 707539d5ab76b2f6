"""Programs of the processing engine on hardware."""

from tilewright.golden.spec.pe.instruction import Operation
from tilewright.golden.spec.pe.registers import PE_REGISTERS, Put

from .golden import ProgramResult

__all__ = ["run_on_session"]

#: Reads of a register before pages come late: as long as a program's setup, about.
_DELAY = 60


def run_on_session(program, session):
    """Runs a :class:`PeProgram` on a ``PeSession``, from a reset on.

    A HALT follows, so that all has been performed. Pages that come late are put into registers while the program runs.
    Returns a :class:`ProgramResult`.
    """
    if program.params != session.params:
        raise ValueError(f"the program is for an engine of {program.params}, not {session.params}")
    session.reset()
    session.shared_memory.write(0, program.smem)
    run = session.run(
        [*program.words, int(Operation.HALT)],
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
