"""``tilewright parameters``: lists the names for ``--set``, with the values of a preset."""

from tilewright.hw.core.params import ENGINES
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.sim.hdl.settings import GROUPS, Setting, parameters_of
from tilewright.sim.hdl.tops import TOPS

from ..package.choice import Choice
from ..package.ports import attribute_docs

__all__ = ["configure", "run"]

#: All that tops can have.
_ALL = {"core": {"engines": ENGINES}, "cluster": {"engines": ENGINES, "l2": True}}


def configure(parser):
    """Arguments of the subcommand."""
    parser.add_argument("--preset", choices=list(TMAU_PRESETS), default="default", help="configuration (%(default)s)")
    parser.add_argument("--top", choices=list(TOPS), default="cluster",
                        help="parameters of one top, with all that it can have (%(default)s)")  # fmt: skip


def run(args):
    """Prints a line for each parameter, which begins as ``--set`` takes it."""
    params = Choice(args.top, args.preset, **_ALL.get(args.top, {})).component().params
    docs = {f"{group}.{name}": meaning for group, kind in GROUPS.items() for name, _, meaning in attribute_docs(kind)}
    for path, value in parameters_of(params).items():
        setting = str(Setting(*path.split("."), value))
        print(f"{setting:<30} {docs[path].partition('. ')[0].rstrip('.')}.".replace("`", ""))
    return 0
