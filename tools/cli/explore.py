"""``tilewright explore``: what parameters cost and bring, over a space of points, on as many workers as there are."""

from importlib import import_module
from pathlib import Path

from tilewright.arguments import add_out
from tilewright.workers import add_workers

__all__ = ["configure", "run"]


def configure(parser):
    """Adds the arguments of the subcommand."""
    parser.add_argument("space", metavar="SPACE.toml", help="file of a space, or the name of one that comes with us")
    add_workers(parser)
    add_out(parser, "FOLDER", "where results go, and are found again (build/explore/<space>)")


def run(args):
    """Runs the subcommand; returns 1 if a point failed, otherwise 0."""
    run_module = import_module("tilewright.tools.explore.run")  # needs packages that the help of the command does not
    path = Path(args.space)
    if not path.exists() and (run_module.SPACES / f"{args.space}.toml").exists():
        path = run_module.SPACES / f"{args.space}.toml"
    return run_module.explore(path, args.out, args.scheduler, args.workers)
