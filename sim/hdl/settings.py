"""``--set``: parameters of a preset changed by name, as in ``tmau.max_outstanding=256``.

A name is a group and a parameter of it. Groups are engines and what they share, and have the same names in every top:
``smem.size_bytes`` is the shared memory of all engines of a core.
"""

import difflib
import re
from argparse import Action, ArgumentError, ArgumentTypeError
from dataclasses import dataclass, fields

from tilewright.errors import UsageError
from tilewright.hw.cluster.l2.params import L2Params
from tilewright.hw.cluster.params import ClusterParams
from tilewright.hw.conv.params import ConvUnitParams
from tilewright.hw.core.params import CoreParams, ProgramParams
from tilewright.hw.pe.params import PeParams
from tilewright.hw.smem.params import SmemParams
from tilewright.hw.tmau.params import TmauParams
from tilewright.spec.conv import ConvParams

__all__ = ["GROUPS", "Setting", "add_settings", "changed", "groups_of", "parameters_of", "require_groups",
           "settings_of"]  # fmt: skip

#: Parameters by the name of their group.
GROUPS = {
    "tmau": TmauParams,
    "pe": PeParams,
    "conv": ConvParams,
    "program": ProgramParams,
    "smem": SmemParams,
    "l2": L2Params,
}
#: What another option decides.
_DECIDED = {"tmau.cores": "--cores", "tmau.processors": "--processors", "tmau.prefetches": "--l2"}
#: A comma ends a setting if another one follows; otherwise it separates the names of a list.
_COMMA = re.compile(r",(?=[^,=]*=)")
_BOOLEANS = {"true": True, "false": False}


@dataclass(frozen=True)
class Setting:
    """A parameter and its new value.

    Attributes
    ----------
    group, name : str
    value : int, bool or tuple of str
    """

    group: str
    name: str
    value: object

    @property
    def path(self):
        """Group and name, as users write them."""
        return f"{self.group}.{self.name}"

    def __str__(self):
        value = ",".join(self.value) if isinstance(self.value, tuple) else str(self.value).lower()
        return f"{self.path}={value}"


def add_settings(parser):
    """Adds ``--set`` to a parser: ``settings``, a tuple of :class:`Setting`."""
    parser.add_argument("--set", dest="settings", metavar="NAME=VALUE,...", type=settings_of, action=_Add, default=(),
                        help="parameters that differ from the preset, as tmau.max_outstanding=256; may be repeated. "
                             "`tilewright parameters` lists names and values")  # fmt: skip


class _Add(Action):
    """Adds to the settings of an earlier ``--set``; a parameter that is set twice is refused."""

    def __call__(self, parser, namespace, values, option_string=None):
        settings = (*namespace.settings, *values)
        paths = [setting.path for setting in settings]
        twice = next((path for path in paths if paths.count(path) > 1), None)
        if twice:
            raise ArgumentError(self, f"{twice} is set twice")
        namespace.settings = settings


def settings_of(text):
    """The settings that a text names, as ``tmau.max_burst=8,l2.ways=4``; ArgumentTypeError if there are none."""
    return tuple(map(_setting, _COMMA.split(text)))


def _setting(text):
    path, equals, value = text.partition("=")
    if not equals:
        raise ArgumentTypeError(f"must be NAME=VALUE, as tmau.max_outstanding=256, not {text!r}")
    if path in _DECIDED:
        raise ArgumentTypeError(f"{path} is chosen by {_DECIDED[path]} of `tilewright verilog`")
    known = {f"{group}.{name}": (group, name, kind) for group in GROUPS for name, kind in _names(group)}
    if path not in known:
        raise ArgumentTypeError(f"there is no parameter {path!r}{_suggestion(path, known)}")
    group, name, kind = known[path]
    return Setting(group, name, _value(path, kind, value))


def _names(group):
    """Name and type of every parameter of a group that can be set."""
    return [
        (field.name, field.type)
        for field in fields(GROUPS[group])
        if field.type is not SmemParams and f"{group}.{field.name}" not in _DECIDED
    ]


def _suggestion(path, known):
    """Names that may have been meant, as the rest of a sentence."""
    own = [each for each in known if each.partition(".")[2] == path.rpartition(".")[2]]
    near = own or difflib.get_close_matches(path, known, n=1)
    return f": did you mean {' or '.join(near)}?" if near else ": `tilewright parameters` lists them"


def _value(path, kind, text):
    if kind is bool:
        if text.lower() not in _BOOLEANS:
            raise ArgumentTypeError(f"{path} must be true or false, not {text!r}")
        return _BOOLEANS[text.lower()]
    if kind is int:
        try:
            return int(text, 0)
        except ValueError:
            raise ArgumentTypeError(f"{path} must be an integer, not {text!r}") from None
    return tuple(text.split(",")) if text else ()


def groups_of(params):
    """The parameters of a top, an engine or a core, by group."""
    match params:
        case ClusterParams():
            return groups_of(params.core) | ({"l2": params.l2} if params.l2 else {})
        case CoreParams():
            groups = {name: getattr(params, name) for name in params.engines}
            if params.conv:
                groups["conv"] = params.conv.conv
            return groups | {"smem": params.smem}
        case ConvUnitParams():
            return {"conv": params.conv, "smem": params.smem}
    name = next(name for name, kind in GROUPS.items() if isinstance(params, kind))
    return {name: params, "smem": params.smem}


def parameters_of(params):
    """Values of the parameters that can be set, by path: what a top, an engine or a core is built with."""
    groups = groups_of(params)
    return {f"{group}.{name}": getattr(groups[group], name) for group in groups for name, _ in _names(group)}


def require_groups(settings, groups):
    """UsageError if a setting is of none of ``groups``, those of all that is built."""
    for setting in settings:
        if setting.group not in groups:
            raise UsageError(f"--set {setting}: what is built has no {setting.group}, only {', '.join(groups)}")


def changed(params, settings):
    """``params`` with the settings of its groups; those of other groups are for others.

    Raises
    ------
    UsageError
        If there is no such hardware: the settings, and the sentence of the parameters.
    """
    groups = groups_of(params)
    own = [setting for setting in settings if setting.group in groups]
    if not own:
        return params
    made = dict(groups)
    for name, group in groups.items():
        if changes := [setting for setting in own if setting.group == name]:
            made[name] = _checked(changes, group.replace, **{each.name: each.value for each in changes})
    return _checked(own, _with_groups, params, made)


def _checked(settings, make, *args, **options):
    try:
        return make(*args, **options)
    except (TypeError, ValueError) as error:
        raise UsageError(f"--set {','.join(map(str, settings))}: {error}") from None


def _with_groups(params, groups):
    """``params`` made of other groups."""
    smem = groups["smem"]
    match params:
        case ClusterParams():
            return params.replace(core=_with_groups(params.core, groups), l2=groups.get("l2"))
        case CoreParams():
            parts = {name: groups[name].replace(smem=smem) for name in ("tmau", "pe") if name in groups}
            if params.conv:
                parts["conv"] = params.conv.replace(conv=groups["conv"], smem=smem)
            return params.replace(**parts, program=groups.get("program"))
        case ConvUnitParams():
            return params.replace(conv=groups["conv"], smem=smem)
        case TmauParams():
            return groups["tmau"].replace(smem=smem)
    return groups["pe"].replace(smem=smem)
