"""Replay on the golden model."""

import hashlib
from contextlib import contextmanager

from tilewright.golden import Machine, Memory, command_word
from tilewright.golden.spec import Opcode

from .pe_cases import PeCase
from .pe_replay import run_pe_case
from .replay_outcome import Outcome

__all__ = ["open_backend", "result_record", "run_case"]


@contextmanager
def open_backend(args):
    """A replay backend: yields a callable that takes a case and returns an :class:`Outcome`."""
    yield run_case


def run_case(case):
    """Runs a case that is not to be skipped. Every issue of a command has an entry in tx_bytes; 0 if it was refused."""
    if isinstance(case, PeCase):
        return run_pe_case(case)
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
            errors += [record.code for record in machine.errors]
            machine.errors.clear()
    return Outcome(result_record(case, errors[0] if errors else None, landed, gmem, smem), {"gmem": gmem, "smem": smem})


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
