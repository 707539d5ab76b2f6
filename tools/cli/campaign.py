"""``tilewright campaign``: random cases on golden and on the RTL, for hours, on as many workers as there are."""

from importlib import import_module

from tilewright.arguments import add_out, between, integer
from tilewright.errors import UsageError
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.workers import add_workers

__all__ = ["NAMES", "configure", "run"]

#: Kinds of cases: the command's help needs none of their packages.
NAMES = ("loads", "mixed", "garbage", "programs", "jobs", "clusters", "networks", "networks-rtl")


def configure(parser):
    """Adds the arguments of the subcommand."""
    parser.add_argument("--cases", type=integer(1, 1 << 30), help="cases of each kind")
    parser.add_argument("--hours", type=_hours, help="begin new cases for so long, instead of --cases")
    parser.add_argument("--seed", type=integer(0, (1 << 31) - 1), default=1, help="of all cases (%(default)s)")
    parser.add_argument("--kind", choices=NAMES, action="append", help="may be repeated; all if left out")
    parser.add_argument("--preset", choices=list(TMAU_PRESETS), default="unit", help="configuration (%(default)s)")
    add_workers(parser)
    add_out(parser, "FOLDER", "where results go, and are found again (build/campaign)")


def _hours(text):
    return between(text, float, 0.001, 10_000)


def run(args):
    """Runs the subcommand; returns 1 if a case differs from golden, otherwise 0."""
    if (args.cases is None) == (args.hours is None):
        raise UsageError("either --cases or --hours must be given")
    kinds = list(dict.fromkeys(args.kind or NAMES))
    campaign = import_module("tilewright.tools.campaign.run").campaign  # needs packages that the help does not
    return campaign(kinds, args.preset, args.seed, args.cases, args.hours, args.out, args.scheduler, args.workers)
