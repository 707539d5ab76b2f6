"""``tilewright mutate``: small changes of the hardware, and how many of them random runs and proofs notice, by Dask."""

import json
import re
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from tilewright.arguments import integer
from tilewright.errors import HostError, UsageError
from tilewright.files import BUILD
from tilewright.hw.conv.params import CONV_UNIT_PRESETS
from tilewright.hw.core.params import CoreParams
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.progress import report, working
from tilewright.results import record
from tilewright.sim.hdl.simulation import SimulationError
from tilewright.sim.hdl.testbench import TOP, kept_text
from tilewright.sim.replay.rtl import run_on_session
from tilewright.sim.session import Session
from tilewright.workers import Records, add_workers, connected, key_of, worked

from .compare.batch_run import RandomRun
from .compare.job_run import JobRun
from .compare.mixed_run import MixedRun
from .compare.pe_program_run import ProgramRun
from .formal import FOLDER, run_tool
from .mutants import MOST, SELECT, SELECT_WIDTH, Mutant, mutate
from .random.batches import random_batches
from .random.conv_jobs import random_jobs
from .random.mixed import random_mixes
from .random.pe_programs import random_programs

__all__ = ["DESIGNS", "Chunk", "Design", "Proof", "configure", "judge_chunk", "make_model", "mutated_verilog",
           "proofs_left", "run"]  # fmt: skip

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

        kept = json.loads(kept_text(text, "mutants", design.params, design.blocks, count, seed))
        made.extend(Mutant(number, facts) for number, facts in kept["mutants"])
        return replace(made_design, verilog=kept["verilog"])

    session = Session(params=design.params, change=change, patience=_PATIENCE)
    return session, made


def _equals(design, count, seed, number):
    """Whether every run equals golden; in a simulator of its own, as a mutant may leave it in any state."""
    session, _ = _opened(design, count, seed)
    with session:
        session.simulation.controls[design.control] = number
        try:
            return not any(design.runs(session))
        except SimulationError:
            return False


_READ = "read_rtlil {source}\nprep -top top"
# Commands of SymbiYosys between the design and the solver.
_WRITE = """\
memory_nordff
chformal -lower
formalff -clk2ff -ff2anyinit -hierarchy
async2sync
dffunmap
write_smt2 -wires {target}"""


class Proof(NamedTuple):
    """A proof that should fail.

    Attributes
    ----------
    name : str
        Its folder.
    depth : int
        Cycles from the start within which it should.
    """

    name: str
    depth: int


_DEPTH = re.compile(r"^depth (\d+)$", re.MULTILINE)
_MODULES = re.compile(r"^module \\(top\.dut[.\S]*)", re.MULTILINE)
_LEAST_DEPTH = 8  # cycles of an induction are few, and show little from the start
_MOST_SECONDS = 120  # for a mutant: one that takes longer counts as not noticed


def proofs_left(folder):
    """The proofs of a device that ``prove`` has left in a folder; UsageError if there are none."""
    found = []
    for path in sorted(Path(folder).glob("*/run.sby")):
        text = path.read_text()
        if "mode cover" not in text and _MODULES.search((path.parent / "top.il").read_text()):
            found.append(Proof(path.parent.name, max(int(_DEPTH.search(text)[1]), _LEAST_DEPTH)))
    if not found:
        raise UsageError(f"there are no proofs in {folder}: `make test T=tests/formal` leaves them there")
    return found


def _survivors_of_proof(folder, proof, count, seed):
    """Mutants of a proof's device, and those that break none of its properties."""
    text = (Path(folder) / proof.name / "top.il").read_text()
    modules = list(dict.fromkeys(_MODULES.findall(text)))
    smt2, mutants = mutate(text, read=_READ, modules=modules, count=count, seed=seed, write=_WRITE)
    with tempfile.TemporaryDirectory(prefix="tilewright-") as place:
        (Path(place) / "design.smt2").write_text(smt2)
        if not _holds(place, proof, 0):
            raise RuntimeError(f"the proof {proof.name} fails without any mutant")
        return len(mutants), [mutant for mutant in mutants if _holds(place, proof, mutant.number)]


def _holds(folder, proof, number):
    """Whether every property holds with this mutant."""
    (Path(folder) / "select.smtc").write_text(f"always\nassume (= [{SELECT}] #b{number:0{SELECT_WIDTH}b})\n")
    options = ["-s", "yices", "-t", str(proof.depth), "--noprogress", "--smtc", "select.smtc"]
    try:
        run = run_tool("smtbmc", *options, "design.smt2", cwd=folder, timeout=_MOST_SECONDS)
    except subprocess.TimeoutExpired:
        if number:
            return True
        raise RuntimeError(f"{proof.depth} cycles of the proof {proof.name} take over {_MOST_SECONDS} s") from None
    if "Status: PASSED" in run.stdout:
        return True
    if "Status: FAILED" in run.stdout:
        return False
    raise RuntimeError(f"the solver gave no answer: {(run.stderr + run.stdout).strip()[-300:]}")


@dataclass(frozen=True)
class Chunk:
    """Mutants that a worker judges in one go.

    Attributes
    ----------
    judge : str
        ``"simulation"`` or ``"properties"``.
    name : str
        Of a design in :data:`DESIGNS`, or of a proof.
    count, seed : int
        Of all mutants of the design, and of their choice.
    first : int
        Index of the first mutant of the chunk; a proof has one chunk.
    proof : Proof or None
    folder : str
        Of the proofs.
    """

    judge: str
    name: str
    count: int
    seed: int
    first: int = 0
    proof: Proof | None = None
    folder: str = ""

    @property
    def key(self):
        """A word for the chunk and the sources; of a proof also for its design."""
        design = (Path(self.folder) / self.name / "top.il").read_bytes() if self.proof else b""
        return key_of("mutants", replace(self, folder=""), design)


#: Mutants of a chunk in simulation.
_SLICE = 16


def make_model(chunk):
    """Builds the model of a chunk's design, unless it is there; the design without a mutant must equal golden."""
    if not _equals(DESIGNS[chunk.name], chunk.count, chunk.seed, 0):
        raise HostError(f"the simulation of {chunk.name} differs from the golden model without any mutant")
    return {}


def judge_chunk(chunk, model=None):
    """The record of a chunk: its mutants, and those that nothing noticed, or why a proof does not judge any.

    ``model`` is the record of :func:`make_model`.
    """
    if chunk.proof:
        try:
            count, survivors = _survivors_of_proof(chunk.folder, chunk.proof, chunk.count, chunk.seed)
        except HostError:
            raise
        except RuntimeError as error:
            return {"mutants": 0, "survivors": [], "failure": str(error)}
    else:
        session, mutants = _opened(DESIGNS[chunk.name], chunk.count, chunk.seed)
        session.close()
        mine = mutants[chunk.first : chunk.first + _SLICE]
        survivors = [one for one in mine if _equals(DESIGNS[chunk.name], chunk.count, chunk.seed, one.number)]
        count = len(mine)
    return {"mutants": count, "survivors": [str(mutant) for mutant in survivors]}


_JUDGES = ("simulation", "properties")


def configure(parser):
    """Adds the arguments of the subcommand."""
    parser.add_argument("--block", action="append", metavar="NAME",
                        help=f"of {', '.join(DESIGNS)}, or of a proof; may be repeated; whole engines and all proofs "
                             "if left out")  # fmt: skip
    parser.add_argument("--judge", choices=_JUDGES, help="both if left out")
    parser.add_argument("--count", type=integer(1, MOST), default=100, help="mutants of each design (%(default)s)")
    parser.add_argument("--of-proofs", type=integer(1, MOST), default=20, help="mutants of each proof (%(default)s)")
    parser.add_argument(
        "--seed", type=integer(0, (1 << 31) - 1), default=1, help="of the choice of mutants (%(default)s)"
    )
    parser.add_argument(
        "--proofs", metavar="FOLDER", type=Path, default=FOLDER, help="where proofs were left (%(default)s)"
    )
    add_workers(parser)


def run(args):
    """Runs the subcommand."""
    chunks = _chunks(args)
    records, found, models = Records(BUILD / "mutants"), {}, {}

    def submit(run, chunk):
        if chunk.judge == "simulation" and chunk.name not in models:
            models[chunk.name] = run(make_model, chunk)
        return run(judge_chunk, chunk, models.get(chunk.name))

    with working("mutants"):
        report("workers")
        with connected(args.scheduler, args.workers) as client:
            for chunk, one in worked(client, submit, chunks, records, "chunks"):
                found[chunk] = one
    for judge, name in dict.fromkeys((chunk.judge, chunk.name) for chunk in chunks):
        mine = [found[chunk] for chunk in chunks if (chunk.judge, chunk.name) == (judge, name)]
        if failure := next((one["failure"] for one in mine if "failure" in one), None):
            print(f"{name}: not judged: {failure}")
            continue
        count = sum(one["mutants"] for one in mine)
        survivors = [text for one in mine for text in one["survivors"]]
        record(f"mutation-{judge}-{name}", command="tilewright mutate", block=name, mutants=count,
               killed=count - len(survivors), seed=args.seed, survivors=survivors)  # fmt: skip
        print(f"{name}: {count - len(survivors)} of {count} mutants killed by {judge}")
        for text in survivors:
            print(f"  survived {text}")
    return 0


def _chunks(args):
    """All chunks; UsageError if a name is of nothing."""
    proofs = {} if args.judge == "simulation" else {proof.name: proof for proof in proofs_left(args.proofs)}
    designs = {} if args.judge == "properties" else DESIGNS
    whole = [name for name, design in designs.items() if len(design.blocks[0].split(".")) == 1]
    names = args.block or [*whole, *proofs]
    for name in names:
        if name not in designs and name not in proofs:
            raise UsageError(f"there is no block {name}: {', '.join((*designs, *proofs))}")
    return [
        *(Chunk("simulation", name, args.count, args.seed, first) for name in names if name in designs
          for first in range(0, args.count, _SLICE)),
        *(Chunk("properties", name, args.of_proofs, args.seed, 0, proofs[name], str(args.proofs.resolve()))
          for name in names if name in proofs),
    ]  # fmt: skip
