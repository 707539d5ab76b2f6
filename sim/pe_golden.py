"""Programs of the processing engine on the golden model."""

from typing import NamedTuple

import numpy as np

from tilewright.golden.pe.machine import Fault, Pe

__all__ = ["PeRun", "golden_engine", "run_on_golden"]


class PeRun(NamedTuple):
    """What a program leaves, on whatever it ran.

    Attributes
    ----------
    smem : uint8 array
        All of shared memory.
    fault : Fault or None
        The error record: of the first instruction that met an error.
    fault_count : int
        Instructions that met one.
    """

    smem: np.ndarray
    fault: Fault | None
    fault_count: int


def golden_engine(program):
    """The golden model before the first instruction of a :class:`PeProgram`; pages that come late are there."""
    engine = Pe(program.smem.copy(), program.params)
    for index, word in program.segments.items():
        engine.write_segment(index, word)
    for index, word in (program.pages | (program.late or {})).items():
        engine.write_page(index, word)
    return engine


def run_on_golden(program):
    """Runs a whole program; returns a :class:`PeRun`."""
    engine = golden_engine(program)
    engine.run(program.words)
    return PeRun(engine.smem, engine.faults[0] if engine.faults else None, len(engine.faults))
