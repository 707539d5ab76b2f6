"""Replay on the golden model."""

import hashlib
from contextlib import contextmanager
from importlib import import_module
from typing import NamedTuple

import numpy as np

from tilewright.golden import Machine, Memory, command_word
from tilewright.golden.spec import Opcode

from .cases import ENGINE_KINDS
from .conv_cases import run_conv_case
from .outcome import Outcome

__all__ = ["Run", "open_backend", "result_record", "run_case", "run_commands"]


class Run(NamedTuple):
    """What became of the commands of a case.

    Attributes
    ----------
    errors : list of Error or None
        Of each issue of a command.
    tx_bytes : list of int
        Bytes of its transfer; 0 if it was refused.
    gmem, smem : uint8 array
    """

    errors: list
    tx_bytes: list
    gmem: np.ndarray
    smem: np.ndarray


@contextmanager
def open_backend(args):
    """A replay backend: yields a callable that takes a case and returns an :class:`Outcome`."""
    yield run_case


def run_case(case):
    """Runs a case that is not to be skipped."""
    if case.kind == "conv":
        return run_conv_case(case)
    if case.kind == "core":
        return import_module("tilewright.sim.replay.core_cases").run_core_case(case)
    if case.kind in ENGINE_KINDS:
        return import_module("tilewright.sim.replay.pe.golden").run_pe_case(case)
    run = run_commands(case)
    record = result_record(case, next(filter(None, run.errors), None), run.tx_bytes, run.gmem, run.smem)
    return Outcome(record, {"gmem": run.gmem, "smem": run.smem})


def run_commands(case):
    """Runs the commands of a case of the TMAU; a :class:`Run`."""
    gmem, smem = case.global_contents(), case.smem.contents()
    machine = Machine(Memory(gmem, "global memory"), smem, windows=case.windows)
    landed, errors = [], []
    for command in case.commands:
        spec = case.maps.get(command.map)
        for fields in command.issues:
            if spec and spec.word is None:  # no hardware ever sees it: software refuses it
                landed.append(0)
                errors.append(spec.refused)
                continue
            landed.append(_issue(machine, command.opcode, spec, fields) or 0)
            errors.append(machine.errors.pop().code if machine.errors else None)
    return Run(errors, landed, gmem, smem)


def _issue(machine, opcode, spec, fields):
    """Runs one command; a descriptor that the case does not place lies outside of all memory."""
    if spec is None:
        return machine.execute(command_word(opcode, **fields))
    if spec.at is not None:
        return machine.execute(command_word(opcode, descriptor=spec.at, **fields))
    if opcode == Opcode.INVALIDATE:
        return 0
    return machine.execute_on(spec.word, opcode, **fields)


def result_record(case, error, tx_bytes, gmem, smem):
    """The part of a result record that every backend has; ``error`` is a ``golden.spec.Error`` or None."""
    strides = {} if case.strides is None else {"strides": case.strides}
    return {
        "name": case.name,
        "error": error.name.lower() if error else None,
        "tx_bytes": tx_bytes,
        "smem_sha256": [hashlib.sha256(smem).hexdigest()],
        "gmem_sha256": hashlib.sha256(gmem).hexdigest(),
        **strides,
    }
