"""Mutants of a block against random commands on the subsystem: each must differ from the golden model."""

import re
from dataclasses import replace
from functools import partial
from itertools import islice

from tilewright.hw.tmau.params import TMAU_PRESETS

from ..compare.batch_run import RandomRun
from ..hdl.simulation import SimulationError
from ..hdl.testbench import TOP
from ..progress import counted
from ..random.batches import random_batches
from ..session import TmauSession
from .mutants import SELECT, SELECT_WIDTH, mutate

__all__ = ["survivors_of_simulation"]

#: Small, and yet with a wide bus: behind a narrow one no two rows share a word.
_PARAMS = TMAU_PRESETS["unit"].replace(bus_bytes=64)
_SEED = 1  # of the batches
_BATCHES = 8
_PATIENCE = 100_000  # cycles: no batch takes a tenth of it

#: Control of the harness that says which mutant is active. Random runs inject no errors, so that the window in which
#: the memory would answer with one is free.
_CONTROL = "error_first"

_MODULE = re.compile(r"^module \\(?P<name>\S+) .*?^endmodule\n", re.MULTILINE | re.DOTALL)
_READ = "read_verilog -icells {source}\nproc\nopt_clean"


def survivors_of_simulation(block, count, seed):
    """Number of mutants, and those whose runs equal the golden model in every way."""
    made = []

    def change(design):
        if not made:
            names = [f"harness.dut.{instance}" for instance in block.simulated]
            made.extend(_mutated(design.verilog, names, count, seed))
        return replace(design, verilog=made[0])

    session = partial(TmauSession, params=_PARAMS, change=change, patience=_PATIENCE)
    batches = list(islice(random_batches(_SEED, _PARAMS, descriptors=1000), _BATCHES))
    if not _equal(session, batches, 0):
        raise RuntimeError("the simulation differs from the golden model without any mutant")
    _, mutants = made
    survivors = [mutant for mutant in counted("mutants", mutants) if _equal(session, batches, mutant.number)]
    return len(mutants), survivors


def _mutated(verilog, names, count, seed):
    """The Verilog with the modules ``names`` replaced by one netlist that holds all mutants, and these."""
    there = {match["name"] for match in _MODULE.finditer(verilog)}
    for name in names:
        if name not in there:
            raise RuntimeError(f"there is no block {name}")
    # With the modules below them, so that Yosys knows which ports are inputs.
    pieces = [match[0] for match in _MODULE.finditer(verilog) if f"{match['name']}.".startswith(_below(names))]
    ports = " ".join(f"\\{name}/w:{SELECT}" for name in names)
    text, mutants = mutate(
        "\n".join(pieces),
        read=_READ,
        modules=names,
        count=count,
        seed=seed,
        # The input is connected to nothing: it becomes an inner wire, which reads the control from where it is.
        write=f"delete -port {ports}\nwrite_verilog -noattr {{target}}",
    )
    declaration = f"wire [{SELECT_WIDTH - 1}:0] {SELECT};"
    if text.count(declaration) != len(names):
        raise RuntimeError(f"Yosys declares {SELECT} otherwise than expected")
    text = text.replace(declaration, f"wire [{SELECT_WIDTH - 1}:0] {SELECT} = {TOP}.{_CONTROL};")
    for piece in pieces:
        verilog = verilog.replace(piece, "")
    return verilog + text, mutants


def _below(names):
    return tuple(f"{name}." for name in names)


def _equal(new_session, batches, number):
    """Whether every batch equals golden; in a simulator of its own, as a mutant may leave it in any state."""
    with new_session() as session:
        session.simulation.controls[_CONTROL] = number
        run = RandomRun(session)
        try:
            return not any(run.run(batch) for batch in batches)
        except SimulationError:
            return False
