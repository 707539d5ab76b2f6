"""The tops that a command writes, with their options, for ``verilog`` and ``header``; and ``tilewright parameters``."""

import shlex
from dataclasses import dataclass

from tilewright.arguments import integer
from tilewright.errors import UsageError
from tilewright.hw.core.params import ENGINES
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.sim.hdl.settings import GROUPS, Setting, add_settings, groups_of, parameters_of, require_groups
from tilewright.sim.hdl.tops import TOPS, engine_list, feature_list, module_name, top_component, top_params, top_verilog
from tilewright.spec.cluster import MOST_CORES
from tilewright.spec.tmau_registers import MOST_PROCESSORS

from .ports import attribute_docs

__all__ = ["Choice", "choices", "configure", "configure_choice", "run"]


@dataclass(frozen=True)
class Choice:
    """A top with its options, as in :func:`~..hdl.export.top_params`.

    Attributes
    ----------
    top, preset : str
    without, engines : tuple of str
    l2 : bool
    cores : int or None
    processors : int
    settings : tuple of Setting
    prefix : str or None
        Beginning of the module's name.
    """

    top: str
    preset: str
    without: tuple = ()
    engines: tuple = ()
    l2: bool = False
    cores: int | None = None
    processors: int = 1
    settings: tuple = ()
    prefix: str | None = None

    @property
    def name(self):
        """The name of the module and its files."""
        return module_name(self.top, self.preset, self.prefix)

    @property
    def options(self):
        """The options of the command line that make exactly this top, as text."""
        given = {
            "preset": self.preset,
            "top": self.top,
            "engines": ",".join(self.engines),
            "l2": self.l2,
            "without": ",".join(self.without),
            "cores": self.cores,
            "processors": self.processors if self.processors > 1 else None,
            "set": ",".join(map(str, self.settings)),
            "name": self.prefix,
        }
        words = []
        for option, value in given.items():
            if value:
                words += [f"--{option}"] if value is True else [f"--{option}", str(value)]
        return shlex.join(words)

    def component(self):
        """The component, before elaboration."""
        return top_component(self.top, self.preset, **self._given)

    def verilog(self):
        """The Verilog for the simulators of this package."""
        return top_verilog(self.top, self.preset, self.prefix, **self._given)

    @property
    def _given(self):
        names = ("without", "engines", "l2", "cores", "processors", "settings")
        return {name: getattr(self, name) for name in names}


def configure_choice(parser):
    """Adds the arguments."""
    parser.add_argument("--preset", choices=list(TMAU_PRESETS), default="default", help="configuration of the hardware")
    parser.add_argument("--top", choices=list(TOPS), help="one top (all)")
    parser.add_argument("--without", metavar="FEATURE,...", type=feature_list, default=(),
                        help="features of the access unit that are not built")  # fmt: skip
    parser.add_argument("--engines", metavar="ENGINE,...", type=engine_list, default=(),
                        help="engines of a core: tmau, pe, conv, program; with --top core (tmau,pe) or --top "
                             "cluster (tmau)")  # fmt: skip
    parser.add_argument("--l2", action="store_true", help="a second-level cache, with --top cluster")
    parser.add_argument("--cores", type=integer(1, MOST_CORES), help="cores, with --top cluster (2)")
    parser.add_argument("--processors", type=integer(1, MOST_PROCESSORS), default=1,
                        help="processors of an access unit (1), with --top tmau, or a core or cluster of access units "
                             "alone")  # fmt: skip
    add_settings(parser)
    parser.add_argument("--name", metavar="PREFIX", help="beginning of the names of modules and files (tw_<preset>)")


def choices(args):
    """The :class:`Choice` of each top that the arguments name; UsageError if the arguments contradict each other.

    If there are several tops, each gets only the settings of its own engines.
    """
    if args.engines and args.top not in ("core", "cluster"):
        raise UsageError("--engines goes with --top core or --top cluster")
    if args.l2 and args.top != "cluster":
        raise UsageError("--l2 goes with --top cluster")
    if args.cores and args.top != "cluster":
        raise UsageError(f"--cores {args.cores} goes with --top cluster")
    if args.processors > 1 and args.top is None:
        raise UsageError(f"--processors {args.processors} goes with a --top")
    found = []
    for top in [args.top] if args.top else TOPS:
        groups = groups_of(top_params(top, args.preset))
        settings = tuple(each for each in args.settings if args.top or each.group in groups)
        given = (args.without, args.engines, args.l2, args.cores, args.processors, settings, args.name)
        found.append(Choice(top, args.preset, *given))
    # Options are checked before anything is made.
    every = dict.fromkeys(group for choice in found for group in groups_of(choice.component().params))
    require_groups(args.settings, every)
    try:
        module_name("", args.preset, args.name)
    except ValueError as error:
        raise UsageError(f"--name: {error}") from None
    return found


#: All that tops can have.
_ALL = {"core": {"engines": ENGINES}, "cluster": {"engines": ENGINES, "l2": True}}


def configure(parser):
    """Arguments of ``tilewright parameters``, which lists the names for ``--set`` with the values of a preset."""
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
