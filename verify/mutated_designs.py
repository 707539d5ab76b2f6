"""Designs with mutants for simulation: which modules are changed, and which runs should differ from golden."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from tilewright.hw.conv.params import CONV_UNIT_PRESETS
from tilewright.hw.core.params import CoreParams
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.sim.hdl.simulation import SimulationError
from tilewright.sim.hdl.testbench import TOP, kept_text
from tilewright.sim.replay.rtl import run_on_session
from tilewright.sim.session import Session
from tilewright.workers import sources_digest

from .compare.batch_run import RandomRun
from .compare.job_run import JobRun
from .compare.mixed_run import MixedRun
from .compare.pe_program_run import ProgramRun
from .mutants import SELECT, SELECT_WIDTH, Mutant, mutate
from .random.batches import random_batches
from .random.conv_jobs import random_jobs
from .random.mixed import random_mixes
from .random.pe_programs import random_programs

__all__ = ["DESIGNS", "Design", "equals_golden", "mutants_of", "mutated_verilog"]

_SEED = 1  # of the random runs
_PATIENCE = 100_000  # cycles: no run takes a tenth of it


class Design(NamedTuple):
    """A design whose modules are changed for simulation.

    Attributes
    ----------
    params : CoreParams
    blocks : tuple of str
        Instances inside the core that are changed, with all below them.
    control : str
        Control of the harness that says which mutant is active: it has no effect in these runs.
    runs : callable
        Takes a session; yields, run by run, whether hardware differs from golden.
    """

    params: CoreParams
    blocks: tuple
    control: str
    runs: Callable


def _commands(session):
    """Loads in batches, then commands of all kinds; no errors are injected."""
    run, params = RandomRun(session), session.params.tmau
    for batch in islice(random_batches(_SEED, params, descriptors=1000), 8):
        yield run.run(batch)
    mixed = MixedRun(session)
    for batch in islice(random_mixes(_SEED, params, 1000), 8):
        yield mixed.run(batch)


def _programs(session):
    run = ProgramRun(lambda program: run_on_session(program, session))
    for program in random_programs(_SEED, session.params.pe, 40):
        yield run.run(program)


def _jobs(session):
    run = JobRun(session)
    for job in random_jobs(_SEED, session.params.conv.conv, 60):
        yield run.run([job.word], job.smem)


# Small, but with a wide bus: on a narrow one no two rows share a word.
_MOVER = CoreParams(TMAU_PRESETS["unit"].replace(bus_bytes=64))
#: By name: whole engines, and blocks of the access unit.
DESIGNS = {
    "tmau": Design(_MOVER, ("tmau",), "error_first", _commands),
    "pe": Design(CoreParams(pe=PE_PRESETS["unit"]), ("pe",), "seed", _programs),
    "conv": Design(CoreParams(conv=CONV_UNIT_PRESETS["unit"].without_floats()), ("conv",), "seed", _jobs),
    "requests": Design(_MOVER, ("tmau.core.requests",), "error_first", _commands),
    "port": Design(_MOVER, ("tmau.core.port", "tmau.core.splitter"), "error_first", _commands),
    "steps": Design(_MOVER, ("tmau.core.load.steps",), "error_first", _commands),
}

_MODULE = re.compile(r"^module \\(?P<name>\S+) .*?^endmodule\n", re.MULTILINE | re.DOTALL)
_INSTANCE = re.compile(r"^  \\(\S+) ", re.MULTILINE)
_READ_VERILOG = "read_verilog -icells {source}\nproc\nopt_clean"


def mutated_verilog(verilog, blocks, control, count, seed):
    """The Verilog of a testbench whose ``blocks`` are a netlist with mutants of all of their modules, and these."""
    texts = {match["name"]: match[0] for match in _MODULE.finditer(verilog)}
    roots = [f"harness.dut.{block}" for block in blocks]
    for root in roots:
        if root not in texts:
            raise RuntimeError(f"there is no block {root}")
    changed = [name for name in texts if name in roots or name.startswith(tuple(f"{root}." for root in roots))]
    # With the modules that they use, so that Yosys knows which ports are inputs.
    needed = list(changed)
    for name in needed:
        used = dict.fromkeys(_INSTANCE.findall(texts[name]))
        needed += [other for other in used if other in texts and other not in needed]
    ports = " ".join(f"\\{root}/w:{SELECT}" for root in roots)
    text, mutants = mutate(
        "\n".join(texts[name] for name in needed),
        read=_READ_VERILOG,
        modules=changed,
        count=count,
        seed=seed,
        # The input is unconnected: it becomes an inner wire, which reads the control of the harness by its path.
        write=f"delete -port {ports}\nwrite_verilog -noattr {{target}}",
    )
    declaration = f"wire [{SELECT_WIDTH - 1}:0] {SELECT};"
    alone = [root for root in roots if _declares(text, root, declaration)]
    if alone != roots:
        raise RuntimeError(f"Yosys declares {SELECT} otherwise than expected")
    for root in roots:
        at = text.index(declaration, text.index(f"module \\{root} "))
        text = f"{text[:at]}{declaration[:-1]} = {TOP}.{control};{text[at + len(declaration) :]}"
    for name in needed:
        verilog = verilog.replace(texts[name], "")
    return verilog + text, mutants


def _declares(text, module, declaration):
    start = text.index(f"module \\{module} ")
    return declaration in text[start : text.index("endmodule", start)]


def _opened(design, count, seed):
    """A session of a design with all of its mutants, which are chosen by a control, and these."""
    made = []

    def change(made_design):
        def text():
            verilog, mutants = mutated_verilog(made_design.verilog, design.blocks, design.control, count, seed)
            return json.dumps({"verilog": verilog, "mutants": [(one.number, one.facts) for one in mutants]})

        kept = json.loads(kept_text(text, "mutants", sources_digest(), design.params, design.blocks, count, seed))
        made.extend(Mutant(number, facts) for number, facts in kept["mutants"])
        return replace(made_design, verilog=kept["verilog"])

    session = Session(params=design.params, change=change, patience=_PATIENCE)
    return session, made


def mutants_of(design, count, seed):
    """The mutants that a design has, by number."""
    session, mutants = _opened(design, count, seed)
    session.close()
    return mutants


def equals_golden(design, count, seed, number):
    """Whether every run equals golden; in a simulator of its own, as a mutant may leave it in any state."""
    session, _ = _opened(design, count, seed)
    with session:
        session.simulation.controls[design.control] = number
        try:
            return not any(design.runs(session))
        except SimulationError:
            return False
