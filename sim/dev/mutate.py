"""``tilewright mutate``: how many small changes of a block the random simulation and the proofs notice.

A change that is not noticed either changes nothing that can be seen, or names a test or property that is missing. The
score is recorded; survivors are printed for a person to judge.
"""

from dataclasses import dataclass
from pathlib import Path

from ..arguments import integer
from ..formal import FOLDER
from ..progress import working
from ..results import record
from .mutants import MOST
from .mutate_properties import proof_file, survivors_of_properties
from .mutate_simulation import survivors_of_simulation

__all__ = ["BLOCKS", "Block", "configure", "run"]


@dataclass(frozen=True)
class Block:
    """What is changed, and the proof that should fail.

    Attributes
    ----------
    simulated : tuple of str
        Instances inside the subsystem that are changed for simulation.
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
    "requests": Block(("unit.core.requests",), "requests", ("dut",), 8),
    "port": Block(("unit.core.port", "unit.core.splitter"), "bus-read-port-0", ("dut",), 12),
    "steps": Block(("unit.core.load.steps",), "steps_16", ("dut",), 8),
}
#: What judges a block, given the arguments of the command: returns the number of mutants, and those not noticed.
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
