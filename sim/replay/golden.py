"""Replay on the golden model."""

import hashlib
from contextlib import contextmanager
from importlib import import_module
from typing import NamedTuple

import numpy as np

from tilewright.golden import Cluster, Memory, command_word, delivery_bits
from tilewright.golden.spec import Opcode

from .cases import ENGINE_KINDS
from .conv_cases import run_conv_case
from .outcome import Outcome, shared_names

__all__ = ["Run", "open_backend", "result_record", "run_case", "run_commands"]


class Run(NamedTuple):
    """What became of the commands of a case.

    Attributes
    ----------
    errors : list of Error or None
        Of each issue of a command.
    tx_bytes : list of int
        Bytes of its transfer; 0 if it was refused.
    gmem : uint8 array
    smems : list of uint8 array
        Of each core.
    """

    errors: list
    tx_bytes: list
    gmem: np.ndarray
    smems: list


@contextmanager
def open_backend(args):
    """A replay backend: yields a callable that takes a case and returns an :class:`Outcome`."""
    yield run_case


def run_case(case):
    """Runs a case."""
    if case.kind == "conv":
        return run_conv_case(case)
    if case.kind == "core":
        return import_module("tilewright.sim.replay.core_cases").run_core_case(case)
    if case.kind in ENGINE_KINDS:
        return import_module("tilewright.sim.replay.pe.golden").run_pe_case(case)
    run = run_commands(case)
    record = result_record(case, next(filter(None, run.errors), None), run.tx_bytes, run.gmem, *run.smems)
    return Outcome(record, {"gmem": run.gmem} | dict(zip(shared_names(case.cores), run.smems, strict=True)))


def run_commands(case):
    """Runs the commands of a case of the TMAU; a :class:`Run`."""
    gmem, smems = case.global_contents(), [case.smem.contents() for _ in range(case.cores)]
    cluster = Cluster(Memory(gmem, "global memory"), smems, windows=case.windows, processors=case.processors)
    landed, errors = [], []
    for command in case.commands:
        spec = case.maps.get(command.map)
        for fields in command.issues:
            if spec and spec.word is None:  # no hardware ever sees it: software refuses it
                landed.append(0)
                errors.append(spec.refused)
                continue
            landed.append(_issue(cluster, command, spec, fields) or 0)
            errors.append(_error(cluster, command.core))
    return Run(errors, landed, gmem, smems)


def _issue(cluster, command, spec, fields):
    """Runs one command; a descriptor that the case does not place lies outside of all memory."""
    placed = {"descriptor": spec.at} if spec and spec.at is not None else {}
    word = command_word(command.opcode, **placed, **fields) | delivery_bits(command.receivers, command.source_core)
    if spec is None or placed:
        return cluster.execute(command.core, word)
    if command.opcode == Opcode.INVALIDATE:
        return 0
    return cluster.execute_on(command.core, spec.word, word)


def _error(cluster, issuer):
    """The error of what has just been run: the issuer's, or else that of the first core that has one; or None."""
    found = [core.errors[-1].code for core in (cluster.cores[issuer], *cluster.cores) if core.errors]
    for core in cluster.cores:
        core.errors.clear()
    return found[0] if found else None


def result_record(case, error, tx_bytes, gmem, *smems):
    """The part of a result record that every backend has; ``error`` is a ``golden.spec.Error`` or None."""
    strides = {} if case.strides is None else {"strides": case.strides}
    return {
        "name": case.name,
        "error": error.name.lower() if error else None,
        "tx_bytes": tx_bytes,
        "smem_sha256": [hashlib.sha256(smem).hexdigest() for smem in smems],
        "gmem_sha256": hashlib.sha256(gmem).hexdigest(),
        **strides,
    }
