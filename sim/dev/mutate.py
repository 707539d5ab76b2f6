"""``tilewright mutate``: how many small changes of a room the random simulation and the proofs notice.

A change that nobody notices either changes nothing that can be seen, or names a test or property that is missing. The
score is recorded; survivors are printed for a person to judge.
"""

from dataclasses import dataclass

from ..results import record
from .mutate_properties import survivors_of_properties
from .mutate_simulation import survivors_of_simulation

__all__ = ["ROOMS", "Room", "configure", "run"]


@dataclass(frozen=True)
class Room:
    """What is changed, and who should notice.

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


#: Rooms that are small enough, by name.
ROOMS = {
    "requests": Room(("core.requests",), "requests", ("dut",), 8),
    "port": Room(("core.port", "core.splitter"), "bus-read-port", ("dut", "dut.splitter"), 12),
    "steps": Room(("core.steps",), "steps_16", ("dut",), 8),
}
_JUDGES = {"simulation": survivors_of_simulation, "properties": survivors_of_properties}


def configure(parser):
    """Adds the arguments of the subcommand."""
    parser.add_argument("--room", choices=list(ROOMS), action="append", help="may be repeated; all if left out")
    parser.add_argument("--judge", choices=list(_JUDGES), help="both if left out")
    parser.add_argument("--count", type=int, default=100, help="mutants of each room (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the choice of mutants (%(default)s)")


def run(args):
    """Runs the subcommand."""
    for judge in [args.judge] if args.judge else _JUDGES:
        for name in args.room or ROOMS:
            count, survivors = _JUDGES[judge](ROOMS[name], args.count, args.seed)
            killed = count - len(survivors)
            record(f"mutation-{judge}-{name}", room=name, mutants=count, killed=killed, seed=args.seed,
                   survivors=[str(mutant) for mutant in survivors])  # fmt: skip
            print(f"{name}: {killed} of {count} mutants killed by {judge}")
            for mutant in survivors:
                print(f"  survived {mutant}")
    return 0
