"""``tilewright mutate``: small changes of the hardware, and how many of them random runs and proofs notice, by Dask."""

from dataclasses import dataclass, replace
from pathlib import Path

from tilewright.arguments import integer
from tilewright.errors import HostError, UsageError
from tilewright.files import BUILD
from tilewright.progress import report, working
from tilewright.results import record
from tilewright.workers import Records, add_workers, connected, key_of, worked

from .formal import FOLDER
from .mutants import MOST
from .mutated_proofs import Proof, proofs_left, survivors_of_proof

__all__ = ["BLOCKS", "ENGINES", "Chunk", "configure", "judge_chunk", "make_model", "run"]

#: Designs of ``mutated_designs.py`` by name, which the command's help must know without their packages: whole engines,
#: and blocks of the access unit.
ENGINES, BLOCKS = ("tmau", "pe", "conv"), ("requests", "port", "steps")


@dataclass(frozen=True)
class Chunk:
    """Mutants that a worker judges in one go.

    Attributes
    ----------
    judge : str
        ``"simulation"`` or ``"properties"``.
    name : str
        Of a design in ``mutated_designs.py``, or of a proof.
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
    from .mutated_designs import DESIGNS, equals_golden

    if not equals_golden(DESIGNS[chunk.name], chunk.count, chunk.seed, 0):
        raise HostError(f"the simulation of {chunk.name} differs from the golden model without any mutant")
    return {}


def judge_chunk(chunk, model=None):
    """The record of a chunk: its mutants, and those that nothing noticed, or why a proof does not judge any.

    ``model`` is the record of :func:`make_model`.
    """
    if chunk.proof:
        try:
            count, survivors = survivors_of_proof(chunk.folder, chunk.proof, chunk.count, chunk.seed)
        except HostError:
            raise
        except RuntimeError as error:
            return {"mutants": 0, "survivors": [], "failure": str(error)}
    else:
        from .mutated_designs import DESIGNS, equals_golden, mutants_of

        made = DESIGNS[chunk.name], chunk.count, chunk.seed
        mine = mutants_of(*made)[chunk.first : chunk.first + _SLICE]
        survivors = [one for one in mine if equals_golden(*made, one.number)]
        count = len(mine)
    return {"mutants": count, "survivors": [str(mutant) for mutant in survivors]}


_JUDGES = ("simulation", "properties")


def configure(parser):
    """Adds the arguments of the subcommand."""
    known = ", ".join((*ENGINES, *BLOCKS))
    meaning = f"of {known}, or of a proof; may be repeated; whole engines and all proofs if left out"
    parser.add_argument("--block", action="append", metavar="NAME", help=meaning)
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
    designs = () if args.judge == "properties" else (*ENGINES, *BLOCKS)
    names = args.block or [*(ENGINES if designs else ()), *proofs]
    for name in names:
        if name not in designs and name not in proofs:
            raise UsageError(f"there is no block {name}: {', '.join((*designs, *proofs))}")
    return [
        *(Chunk("simulation", name, args.count, args.seed, first) for name in names if name in designs
          for first in range(0, args.count, _SLICE)),
        *(Chunk("properties", name, args.of_proofs, args.seed, 0, proofs[name], str(args.proofs.resolve()))
          for name in names if name in proofs),
    ]  # fmt: skip
