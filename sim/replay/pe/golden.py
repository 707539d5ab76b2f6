"""Programs and cases of the processing engine on the golden model, and the outcome of a case wherever it ran."""

import hashlib
from typing import NamedTuple

import numpy as np

from tilewright.golden.pe.machine import BarrierNotCompleteError, Pe

from ...usage import UsageError
from ..outcome import Judgement, Outcome

__all__ = ["ProgramResult", "golden_engine", "judge_pe_case", "pe_outcome", "run_on_golden"]


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


def pe_outcome(case, result):
    """The :class:`Outcome` of a :class:`PeCase` from the :class:`ProgramResult` of its program."""
    fault = result.faults[0] if result.faults else None
    record = {
        "name": case.name,
        "error": fault.code.name.lower() if fault else None,
        "record": fault and {
            "instruction": fault.number - len(case.program.setup),
            "first": fault.first,
            "last": fault.last,
            "register": fault.register,
        },
        "smem_sha256": [hashlib.sha256(result.smem).hexdigest()],
    }  # fmt: skip
    memories = {"smem": result.smem}
    if case.output:
        output = case.output(result.smem)
        memories["output"] = output.reshape(-1).view("uint8")
        record |= {"output_sha256": hashlib.sha256(memories["output"]).hexdigest(), "macs": case.macs}
    return Outcome(record, memories)


def judge_pe_case(case):
    """Runs a case on the golden model; a :class:`Judgement`. UsageError if it waits for a barrier for ever."""
    engine = golden_engine(case.program)
    try:
        engine.run(case.program.words)
    except BarrierNotCompleteError as error:
        raise UsageError(f"case {case.name!r}: {error}") from None
    held = engine.open.memory
    if case.output and held:
        held.undecide("the product")
    return Judgement.of(pe_outcome(case, ProgramResult(engine.smem, engine.faults)), {"smem": held})
