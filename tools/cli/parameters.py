"""``tilewright parameters``: lists the names for ``--set``, with the values of a preset."""

from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.sim.hdl.settings import GROUPS, Setting, parameters_of
from tilewright.sim.hdl.tops import TOPS

from ..package.choice import Choice
from ..package.ports import attribute_docs

__all__ = ["configure", "run"]

#: Options with which tops are shown that have optional engines.
_MORE = {"core": ("conv", "program"), "cluster": ("pe", "conv", "program", "l2")}


def configure(parser):
    """Arguments of the subcommand."""
    parser.add_argument("--preset", choices=list(TMAU_PRESETS), default="default", help="configuration (%(default)s)")
    parser.add_argument("--top", choices=list(TOPS), default="cluster",
                        help="parameters of one top, with all that it can have (%(default)s)")  # fmt: skip


def run(args):
    """Prints a line for each parameter, which begins in the form for ``--set``."""
    params = Choice(args.top, args.preset, more=_MORE.get(args.top, ())).component().params
    docs = {f"{group}.{name}": meaning for group, kind in GROUPS.items() for name, _, meaning in attribute_docs(kind)}
    for path, value in parameters_of(params).items():
        setting = str(Setting(*path.split("."), value))
        print(f"{setting:<30} {docs[path].partition('. ')[0].rstrip('.')}.".replace("`", ""))
    return 0
