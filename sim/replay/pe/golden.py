"""Programs of the processing engine on the golden model."""

from typing import NamedTuple

import numpy as np

from tilewright.golden.pe.machine import Pe

__all__ = ["ProgramResult", "golden_engine", "run_on_golden"]


class ProgramResult(NamedTuple):
    """What a program leaves, on whatever it ran.

    Attributes
    ----------
    smem : uint8 array
        All of shared memory.
    faults : list of Fault
        In program order, one for each instruction that met an error; the first is the error record.
    """

    smem: np.ndarray
    faults: list


def golden_engine(program):
    """The golden model before the first instruction of a :class:`PeProgram`; pages that come late are there."""
    engine = Pe(program.smem.copy(), program.params)
    for index, word in program.segments.items():
        engine.write_segment(index, word)
    for index, word in (program.pages | (program.late or {})).items():
        engine.write_page(index, word)
    return engine


def run_on_golden(program):
    """Runs a whole program; returns a :class:`ProgramResult`."""
    engine = golden_engine(program)
    engine.run(program.words)
    return ProgramResult(engine.smem, engine.faults)
