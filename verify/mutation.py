"""``tilewright mutate``: small changes of a block, and how many of them random runs and proofs notice.

All mutants of a block are in one netlist; an input chooses one by its number.
"""

import re
import tempfile
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path

from tilewright.arguments import integer
from tilewright.errors import UsageError
from tilewright.hw.core.params import CoreParams
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.progress import counted, working
from tilewright.results import record
from tilewright.sim.hdl.simulation import SimulationError
from tilewright.sim.hdl.testbench import TOP
from tilewright.sim.hdl.verilog import run_yosys
from tilewright.sim.session import Session

from .compare.batch_run import RandomRun
from .formal import FOLDER, run_tool
from .random.batches import random_batches

__all__ = ["BLOCKS", "MOST", "SELECT", "SELECT_WIDTH", "Block", "Mutant", "configure", "mutate", "proof_file", "run",
           "survivors_of_properties", "survivors_of_simulation"]  # fmt: skip

#: Name of the new input, of the mutated modules and all above them: number of the mutant that is active, or 0 for none.
SELECT = "mutant"
#: Its bits.
SELECT_WIDTH = 12
#: Mutants that a design may have.
MOST = (1 << SELECT_WIDTH) - 1

_NUMBER = re.compile(rf"-ctrl {SELECT} {SELECT_WIDTH} (\d+)")
_LEFT_OUT = re.compile(r" -port (CLK|Q) ")
_FACTS = re.compile(r"-(module|mode|cell|port|portbit|wire|wirebit|src) (\S+)")


@dataclass(frozen=True)
class Mutant:
    """One change.

    Attributes
    ----------
    number : int
        Of the mutant, from 1 on.
    facts : dict of str to str
        Description by Yosys: ``mode`` of the change, ``module``, ``cell``, ``port``, and ``wire``.
    """

    number: int
    facts: dict

    def __str__(self):
        facts = self.facts
        # The wire at a port: what a port that reads it sees is changed there alone.
        wire = f" ({facts['wire']}[{facts['wirebit']}])" if "wire" in facts else ""
        source = facts.get("src", "").removeprefix(f"{Path.cwd()}/")
        if not source.partition(":")[0].endswith(".py"):
            source = ""
        port = f"{facts['cell']}.{facts['port']}[{facts['portbit']}]{wire}"
        return f"{self.number}: {facts['mode']} {port} of {facts['module']} {source}".rstrip()


def mutate(text, *, read, modules, count, seed, write):
    """Puts mutants of some modules into a design.

    Parameters
    ----------
    text : str
        The design.
    read : str
        Yosys commands that read it from the file ``{source}`` and leave no processes in it.
    modules : sequence of str
        Names of the modules to change, as Yosys has them.
    count : int
        Largest number of mutants: a sample, as even as Yosys makes it, of all small changes.
    seed : int
        Of the sample.
    write : str
        Yosys commands that write the result to the file ``{target}``.

    Returns
    -------
    str, list of Mutant
        The result, with the input :data:`SELECT`, and what is in it.
    """
    if not 1 <= count <= MOST:
        raise ValueError(f"the number of mutants must be 1 to {MOST}, not {count!r}")
    chosen = " ".join(f"\\{module}" for module in modules)
    with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
        (Path(folder) / "source").write_text(text)
        _yosys(
            folder,
            read.format(source="source"),
            "write_rtlil design.il",
            f"mutate -list {count} -seed {seed} -ctrl {SELECT} {SELECT_WIDTH} 1 -o all.ys {chosen}",
        )
        # A changed clock is not a change of the logic, and a change at the output of a register contradicts its init.
        changes = [line for line in (Path(folder) / "all.ys").read_text().splitlines() if not _LEFT_OUT.search(line)]
        _yosys(folder, "read_rtlil design.il", *changes, write.format(target="target"))
        made = [Mutant(int(_NUMBER.search(line)[1]), dict(_FACTS.findall(line))) for line in changes]
        return (Path(folder) / "target").read_text(), made


def _yosys(folder, *commands):
    run_yosys(folder, "\n".join(commands), "make mutants")


_READ = "read_rtlil {source}\nprep -top top"
# Commands of SymbiYosys between the design and the solver.
_WRITE = """\
memory_nordff
chformal -lower
formalff -clk2ff -ff2anyinit -hierarchy
async2sync
dffunmap
write_smt2 -wires {target}"""


def proof_file(block, proofs):
    """The design that the block's proof has left in the folder ``proofs``; UsageError if it has not been run."""
    path = proofs / block.proof / "top.il"
    if not path.exists():
        raise UsageError(f"the proof {block.proof} must have been run once, and left in {proofs}")
    return path


def survivors_of_properties(block, count, seed, proofs):
    """Number of mutants, and those that break no property of the block's proof within ``block.depth`` cycles.

    ``proofs`` is the folder in which ``prove`` has left its runs.
    """
    proof = proof_file(block, proofs)
    modules = [f"top.{instance}" for instance in block.proved]
    smt2, mutants = mutate(proof.read_text(), read=_READ, modules=modules, count=count, seed=seed, write=_WRITE)
    with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
        (Path(folder) / "design.smt2").write_text(smt2)
        if not _holds(folder, block, 0):
            raise RuntimeError(f"the proof {block.proof} fails without any mutant")
        survivors = [mutant for mutant in counted("mutants", mutants) if _holds(folder, block, mutant.number)]
        return len(mutants), survivors


def _holds(folder, block, number):
    """Whether every property holds with this mutant."""
    (Path(folder) / "select.smtc").write_text(f"always\nassume (= [{SELECT}] #b{number:0{SELECT_WIDTH}b})\n")
    run = run_tool(
        "smtbmc", "-s", "yices", "-t", str(block.depth), "--noprogress", "--smtc", "select.smtc",
        "design.smt2", cwd=folder,
    )  # fmt: skip
    if "Status: PASSED" in run.stdout:
        return True
    if "Status: FAILED" in run.stdout:
        return False
    raise RuntimeError(f"the solver gave no answer: {(run.stderr + run.stdout).strip()[-300:]}")


#: Small, but with a wide bus: on a narrow one no two rows share a word.
_PARAMS = TMAU_PRESETS["unit"].replace(bus_bytes=64)
_SEED = 1  # of the batches
_BATCHES = 8
_PATIENCE = 100_000  # cycles: no batch takes a tenth of it

#: Control of the harness that says which mutant is active. Random runs inject no errors, so that the window in which
#: the memory would answer with one is free.
_CONTROL = "error_first"

_MODULE = re.compile(r"^module \\(?P<name>\S+) .*?^endmodule\n", re.MULTILINE | re.DOTALL)
_MUTATE_SIMULATION_READ = "read_verilog -icells {source}\nproc\nopt_clean"


def survivors_of_simulation(block, count, seed):
    """Number of mutants, and those whose runs equal the golden model in every way."""
    made = []

    def change(design):
        if not made:
            names = [f"harness.dut.{instance}" for instance in block.simulated]
            made.extend(_mutated(design.verilog, names, count, seed))
        return replace(design, verilog=made[0])

    session = partial(Session, params=CoreParams(_PARAMS), change=change, patience=_PATIENCE)
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
        read=_MUTATE_SIMULATION_READ,
        modules=names,
        count=count,
        seed=seed,
        # The input is unconnected: it becomes an inner wire, which reads the control of the harness by its path.
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


@dataclass(frozen=True)
class Block:
    """A block to mutate, and the proof that should fail.

    Attributes
    ----------
    simulated : tuple of str
        Instances inside a core of an access unit that are changed for simulation.
    proof : str
        Name of the proof that should fail.
    proved : tuple of str
        Instances inside its specification that are changed.
    depth : int
        Cycles from the start within which it should fail.
    """

    simulated: tuple
    proof: str
    proved: tuple
    depth: int


#: Blocks that are small enough, by name.
BLOCKS = {
    "requests": Block(("tmau.core.requests",), "requests-prove", ("dut",), 8),
    "port": Block(("tmau.core.port", "tmau.core.splitter"), "bus-read-port-0", ("dut",), 12),
    "steps": Block(("tmau.core.load.steps",), "steps_16", ("dut",), 8),
}
#: Judges, functions of a block and the arguments of the command: number of mutants, and the mutants not noticed.
_JUDGES = {
    "simulation": lambda block, args: survivors_of_simulation(block, args.count, args.seed),
    "properties": lambda block, args: survivors_of_properties(block, args.count, args.seed, args.proofs),
}


def configure(parser):
    """Adds the arguments of the subcommand."""
    parser.add_argument("--block", choices=list(BLOCKS), action="append", help="may be repeated; all if left out")
    parser.add_argument("--judge", choices=list(_JUDGES), help="both if left out")
    parser.add_argument("--count", type=integer(1, MOST), default=100, help="mutants of each block (%(default)s)")
    parser.add_argument(
        "--seed", type=integer(0, (1 << 31) - 1), default=1, help="of the choice of mutants (%(default)s)"
    )
    parser.add_argument(
        "--proofs", metavar="FOLDER", type=Path, default=FOLDER, help="where proofs were left (%(default)s)"
    )


def run(args):
    """Runs the subcommand."""
    blocks = args.block or list(BLOCKS)
    if args.judge != "simulation":
        for name in blocks:  # simulation comes first, and takes minutes
            proof_file(BLOCKS[name], args.proofs)
    for judge in [args.judge] if args.judge else _JUDGES:
        for name in blocks:
            with working(f"{name}, {judge}"):
                count, survivors = _JUDGES[judge](BLOCKS[name], args)
            killed = count - len(survivors)
            record(f"mutation-{judge}-{name}", command="tilewright mutate", block=name, mutants=count, killed=killed,
                   seed=args.seed, survivors=[str(mutant) for mutant in survivors])  # fmt: skip
            print(f"{name}: {killed} of {count} mutants killed by {judge}")
            for mutant in survivors:
                print(f"  survived {mutant}")
    return 0
