"""Replay of cases of the processing engine: the result of a run, wherever it ran."""

import hashlib

from tilewright.golden.pe.machine import BarrierNotCompleteError

from ...usage import UsageError
from ..outcome import Outcome
from .golden import run_on_golden

__all__ = ["pe_outcome", "run_pe_case"]


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


def run_pe_case(case):
    """Runs a case on the golden model; UsageError if it waits for a barrier for ever."""
    try:
        return pe_outcome(case, run_on_golden(case.program))
    except BarrierNotCompleteError as error:
        raise UsageError(f"case {case.name!r}: {error}") from None
