"""Replay on the golden model, and files of cases with its results, such as those of a failed random run."""

import json
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tilewright.golden import Cluster, Memory, command_word, delivery_bits
from tilewright.golden.smem import Barrier
from tilewright.spec import BARRIER, BarrierOp, Opcode

from .cases import ENGINE_KINDS, cases_of
from .commands import CaseOp
from .conv_cases import run_conv_case
from .fields import whole_words
from .maps import map_fields
from .outcome import Judgement, Outcome, shared_names

__all__ = ["BARRIER_AT", "Run", "arrivals", "case_of", "case_text", "hardware", "judge", "run_case", "run_commands",
           "transfer_outcome", "why_not"]  # fmt: skip


class Run(NamedTuple):
    """The results of the commands of a case.

    Attributes
    ----------
    errors : list of Error or None
        For each issue of a command.
    tx_bytes : list of int
        Bytes of each transfer; 0 if it was refused.
    gmem : uint8 array
    smems : list of uint8 array
        For each core.
    open_bytes : list of OpenBytes
        For global memory, and for the shared memory of each core.
    """

    errors: list
    tx_bytes: list
    gmem: np.ndarray
    smems: list
    open_bytes: list


def hardware(case, args):
    """Parameters of the hardware for :func:`judge`, or None."""
    return _hardware_module().hardware_of(case, args.preset) if args.preset else None


def why_not(case, args):
    """A sentence on why that hardware does not exist, or None."""
    return _hardware_module().why_no_hardware(case, args.preset) if args.preset else None


def _hardware_module():
    """The module for hardware, which is imported only if it is needed."""
    return import_module("tilewright.sim.replay.hardware")


def run_case(case, hardware=None):
    """The :class:`Outcome` of a case; see :func:`judge`."""
    return judge(case, hardware).outcome


def judge(case, hardware=None):
    """Runs a case; a :class:`Judgement`.

    Parameters
    ----------
    case : Case or one of another engine
    hardware : CoreParams, ClusterParams or None
        The hardware to model, from ``hardware_of``; global memory then has whole bus words. None: 64 address bits, a
        bus of 64 bytes, all features.
    """
    if case.kind == "conv":
        return Judgement(run_conv_case(case))
    if case.kind == "core":
        return import_module("tilewright.sim.replay.core_cases").judge_core_case(case, hardware)
    if case.kind in ENGINE_KINDS:
        return import_module("tilewright.sim.replay.pe_cases").judge_pe_case(case)
    run = run_commands(case, hardware)
    outcome = transfer_outcome(case, next(filter(None, run.errors), None), run.tx_bytes, run.gmem, run.smems)
    return Judgement.of(outcome, dict(zip(outcome.memories, run.open_bytes, strict=True)))


def run_commands(case, hardware=None):
    """Runs the commands of a case of the TMAU; a :class:`Run`. ``hardware`` is as for :func:`judge`."""
    gmem, smems = case.global_contents(), [case.smem.contents() for _ in range(case.cores)]
    options = import_module("tilewright.sim.session.golden_options").machine_options(hardware) if hardware else {}
    memory = whole_words(gmem, options.get("bus_bytes", 1))
    cluster = Cluster(
        Memory(memory, "global memory"), smems, windows=case.windows, processors=case.processors, **options
    )
    tx_bytes, errors = [], []
    for command, spec, fields, refused in case.issues():
        tx_bytes.append(0 if refused else _issue(cluster, command, spec, fields) or 0)
        errors.append(refused or _error(cluster, command.core))
    open_bytes = [cluster.cores[0].gmem.open_bytes, *(core.open_bytes for core in cluster.cores)]
    return Run(errors, tx_bytes, memory[: len(gmem)], smems, open_bytes)


def _issue(cluster, command, spec, fields):
    """Runs one command; a descriptor without an address in the case lies outside all memories."""
    if command.opcode == CaseOp.ARRIVE:
        return _arrive(cluster, command)
    placed = {"descriptor": spec.at} if spec and spec.at is not None else {}
    word = command_word(command.opcode, **placed, **fields) | delivery_bits(command.receivers, command.source_core)
    if spec is None or placed:
        return cluster.execute(command.core, word)
    if command.opcode == Opcode.INVALIDATE:
        return 0
    return cluster.execute_on(command.core, spec.word, word)


#: Address of the barrier of ARRIVE in shared memory. Afterwards the bytes there are as before.
BARRIER_AT = 0


def _arrive(cluster, command):
    """Runs an ARRIVE; returns the arrivals that the barrier has counted."""
    owner, smem, fields = command.core, cluster.cores[command.core].smem, command.fields
    before = smem[BARRIER_AT : BARRIER_AT + BARRIER.bytes].copy()
    cluster.barrier(owner, BarrierOp.INIT, BARRIER_AT, fields["expected"])
    for core in range(len(cluster.cores)):
        if fields["arriving"] >> core & 1:
            cluster.barrier(core, BarrierOp.ARRIVE, BARRIER_AT, fields["value"], of=owner)
    counted = arrivals(smem)
    smem[BARRIER_AT : BARRIER_AT + BARRIER.bytes] = before
    return counted


def arrivals(smem):
    """The arrivals at the barrier at ``BARRIER_AT``, modulo those of two phases."""
    barrier = Barrier.read(smem, BARRIER_AT)
    return barrier.expected * (1 + barrier.phase) - barrier.pending


def _error(cluster, issuer):
    """The error of the last command: the issuer's, or that of the first core with one; or None."""
    codes = [core.errors[-1].code for core in (cluster.cores[issuer], *cluster.cores) if core.errors]
    for core in cluster.cores:
        core.errors.clear()
    return codes[0] if codes else None


def transfer_outcome(case, error, tx_bytes, gmem, smems, **figures):
    """The :class:`Outcome` of a case of the TMAU on any backend.

    Parameters
    ----------
    case : Case
    error : Error, str or None
    tx_bytes : list of int
    gmem : uint8 array
    smems : sequence of uint8 array
        Of each core.
    figures : optional
        Members of the result record that only this backend has.
    """
    error = error.name.lower() if isinstance(error, Enum) else error
    strides = {} if case.strides is None else {"strides": case.strides}
    memories = {"gmem": gmem} | dict(zip(shared_names(case.cores), smems, strict=True))
    return Outcome.of({"name": case.name, "error": error, "tx_bytes": tx_bytes}, memories, **strides, **figures)


def case_text(name, why, commands, *, gmem, smem):
    """The text of a file with one case, whose expectation is golden's result.

    Parameters
    ----------
    name, why : str
    commands : sequence of (TensorMap, coords, smem) or (TensorMap, coords, smem, dict)
        Loads; the dictionary has more or other members of the command, such as ``op``.
    gmem, smem : dict
        Memories as in the file.
    """
    maps, entries = {}, []
    for tmap, coords, address, *more in commands:
        number = next((name for name, known in maps.items() if known == tmap), f"m{len(maps)}")
        maps[number] = tmap
        entry = {"op": "load", "map": number, "coords": list(coords), "smem": address, "async": True}
        entries.append(entry | dict(*more))
    return case_of(
        name, why, {number: map_fields(tmap) for number, tmap in maps.items()}, entries, gmem=gmem, smem=smem
    )


def case_of(name, why, maps, entries, **memories):
    """The same from maps and commands as in a file; ``memories`` are gmem, smem, and windows if any."""
    case = {"name": name, "why": why, "kind": "tmau", **memories, "maps": maps, "commands": entries}
    (parsed,) = cases_of(json.loads(json.dumps({"version": 1, "cases": [case]})), "case", Path())
    record = run_case(parsed).record
    case["expect"] = {
        "error": record["error"],
        "tx_bytes": record["tx_bytes"],
        "smem": {"sha256": record["smem_sha256"][0]},
        "gmem": {"sha256": record["gmem_sha256"]},
    }
    return json.dumps({"version": 1, "cases": [case]})
