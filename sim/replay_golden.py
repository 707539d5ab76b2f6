"""Replay on the golden model."""

import hashlib
from contextlib import contextmanager
from typing import NamedTuple

from tilewright.golden import Machine, Memory

__all__ = ["Outcome", "open_backend", "result_record", "run_case"]


class Outcome(NamedTuple):
    """What came out of a case: its result record (replay.md), and memories by name as uint8 arrays."""

    record: dict
    memories: dict


@contextmanager
def open_backend(args):
    """A replay backend: yields a callable that takes a :class:`cases.Case` and returns an :class:`Outcome`."""
    yield run_case


def run_case(case):
    """Runs a case that is not to be skipped. Every issue of a command has an entry in tx_bytes; 0 if it was refused."""
    gmem, smem = case.gmem.contents(), case.smem.contents()
    machine = Machine(Memory(gmem, "global memory"), smem)
    landed, errors = [], []
    for command in case.commands:
        spec = case.maps[command.map]
        for address in command.addresses:
            if spec.word is None:  # no hardware ever sees it: software refuses it
                landed.append(0)
                errors.append(spec.refused)
                continue
            landed.append(machine.load(spec.word, smem=address, coords=command.coords) or 0)
            errors += [record.code for record in machine.errors]
            machine.errors.clear()
    return Outcome(result_record(case, errors[0] if errors else None, landed, gmem, smem), {"gmem": gmem, "smem": smem})


def result_record(case, error, tx_bytes, gmem, smem):
    """The part of a result record that every backend has; ``error`` is a ``golden.spec.Error`` or None."""
    return {
        "name": case.name,
        "error": error.name.lower() if error else None,
        "tx_bytes": tx_bytes,
        "smem_sha256": [hashlib.sha256(smem).hexdigest()],
        "gmem_sha256": hashlib.sha256(gmem).hexdigest(),
    }
