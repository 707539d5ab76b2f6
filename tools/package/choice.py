"""The tops that a command writes, with their options: common to ``verilog``, ``header`` and ``parameters``."""

import shlex
from dataclasses import dataclass

from tilewright.arguments import integer
from tilewright.errors import UsageError
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.sim.hdl.settings import add_settings, groups_of, require_groups
from tilewright.sim.hdl.tops import (
    TOPS,
    engine_list,
    feature_list,
    module_name,
    top_component,
    top_params,
    top_verilog,
)
from tilewright.spec.cluster import MOST_CORES
from tilewright.spec.tmau_registers import MOST_PROCESSORS

__all__ = ["Choice", "choices", "configure_choice"]


@dataclass(frozen=True)
class Choice:
    """A top with its options, as in :func:`~..hdl.export.top_params`.

    Attributes
    ----------
    top, preset : str
    without, more : tuple of str
    cores : int or None
    processors : int
    settings : tuple of Setting
    prefix : str or None
        Beginning of the module's name.
    """

    top: str
    preset: str
    without: tuple = ()
    more: tuple = ()
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
            "with": ",".join(self.more),
            "without": ",".join(self.without),
            "cores": self.cores,
            "processors": self.processors if self.processors > 1 else None,
            "set": ",".join(map(str, self.settings)),
            "name": self.prefix,
        }
        return shlex.join(word for option, value in given.items() if value for word in (f"--{option}", str(value)))

    def component(self):
        """The component, before elaboration."""
        return top_component(self.top, self.preset, **self._given)

    def verilog(self):
        """The Verilog for the simulators of this package."""
        return top_verilog(self.top, self.preset, self.prefix, **self._given)

    @property
    def _given(self):
        names = ("without", "more", "cores", "processors", "settings")
        return {name: getattr(self, name) for name in names}


def configure_choice(parser):
    """Adds the arguments."""
    parser.add_argument("--preset", choices=list(TMAU_PRESETS), default="default", help="configuration of the hardware")
    parser.add_argument("--top", choices=list(TOPS), help="one top (all)")
    parser.add_argument("--without", metavar="FEATURE,...", type=feature_list, default=(),
                        help="features of the access unit that are not built")  # fmt: skip
    parser.add_argument("--with", dest="more", metavar="conv,program", type=engine_list, default=(),
                        help="with --top core, blocks in addition to its two engines; with --top cluster, blocks in "
                             "addition to the access unit of each core, also pe, and l2")  # fmt: skip
    parser.add_argument("--cores", type=integer(1, MOST_CORES), help="cores, with --top cluster (2)")
    parser.add_argument("--processors", type=integer(1, MOST_PROCESSORS), default=1,
                        help="processors that share an access unit (1), with --top tmau, tmau_subsystem, or cluster "
                             "without engines")  # fmt: skip
    add_settings(parser)
    parser.add_argument("--name", metavar="PREFIX", help="beginning of the names of modules and files (tw_<preset>)")


def choices(args):
    """The :class:`Choice` of each top that the arguments name; UsageError if the arguments contradict each other.

    If there are several tops, each gets only the settings of its own engines.
    """
    if args.more and args.top not in ("core", "cluster"):
        raise UsageError("--with goes with --top core or --top cluster")
    if "pe" in args.more and args.top == "core":
        raise UsageError("--with pe goes with --top cluster: a core always has a processing engine")
    if "l2" in args.more and args.top == "core":
        raise UsageError("--with l2 goes with --top cluster")
    if args.cores and args.top != "cluster":
        raise UsageError(f"--cores {args.cores} goes with --top cluster")
    if args.processors > 1 and args.top is None:
        raise UsageError(f"--processors {args.processors} goes with a --top")
    found = []
    for top in [args.top] if args.top else TOPS:
        groups = groups_of(top_params(top, args.preset))
        settings = tuple(each for each in args.settings if args.top or each.group in groups)
        given = (args.without, args.more, args.cores, args.processors, settings, args.name)
        found.append(Choice(top, args.preset, *given))
    # Options are checked before anything is made.
    every = dict.fromkeys(group for choice in found for group in groups_of(choice.component().params))
    require_groups(args.settings, every)
    try:
        module_name("", args.preset, args.name)
    except ValueError as error:
        raise UsageError(f"--name: {error}") from None
    return found
