"""The tops that users get: their components, presets, names and Verilog."""

import re
import warnings
from argparse import ArgumentTypeError
from functools import partial
from typing import NamedTuple

from amaranth.hdl import UnusedElaboratable

from tilewright.errors import HostError, UsageError
from tilewright.hw.cluster.l2.params import L2Params
from tilewright.hw.cluster.params import ClusterParams
from tilewright.hw.cluster.top import Cluster
from tilewright.hw.conv.params import CONV_UNIT_PRESETS
from tilewright.hw.conv.top import Conv
from tilewright.hw.core.params import CORE_PRESETS, ENGINES, CoreParams, core_params
from tilewright.hw.core.top import Core
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.hw.pe.top import Pe
from tilewright.hw.tmau.params import TMAU_PRESETS, TmauParams
from tilewright.hw.tmau.top import Tmau
from tilewright.spec.names import suggestion
from tilewright.spec.tmau_registers import FEATURES

from .settings import changed, groups_of, require_groups
from .testbench import kept_text
from .verilog import to_verilog

__all__ = ["TOPS", "Top", "engine_list", "feature_list", "module_name", "top_component", "top_params",
           "top_verilog"]  # fmt: skip

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*", re.ASCII)


class Top(NamedTuple):
    """A component that users integrate.

    Attributes
    ----------
    component : type
    presets : dict
        Parameters by name; the names are the same for all tops.
    """

    component: type
    presets: dict


#: Tops by the names that users give, and that their modules have behind the prefix.
TOPS = {
    "tmau": Top(Tmau, TMAU_PRESETS),
    "pe": Top(Pe, PE_PRESETS),
    "conv": Top(Conv, CONV_UNIT_PRESETS),
    "core": Top(Core, CORE_PRESETS),
    #: Two cores of an access unit alone, unless other engines are asked for.
    "cluster": Top(Cluster, {name: ClusterParams(2, core_params(name, ["tmau"])) for name in TMAU_PRESETS}),
}


def module_name(top, preset, prefix=None):
    """Name of the module of a top; the modules below it are called ``name.…``, so that any two designs go together.

    Parameters
    ----------
    top, preset : str
    prefix : str or None
        What the name begins with; ``tw_<preset>`` if None.

    Raises
    ------
    ValueError
        If ``prefix`` is no identifier of Verilog.
    """
    prefix = f"tw_{preset}" if prefix is None else prefix
    if not _IDENTIFIER.fullmatch(prefix):
        raise ValueError(f"a name must be letters, digits and underscores, with no digit first, not {prefix!r}")
    return f"{prefix}_{top}"


def feature_list(text):
    """Features of the access unit by name, with commas between them, for the ``type`` of an argument."""
    names = tuple(text.split(","))
    unknown = next((name for name in names if name not in FEATURES), None)
    if unknown is not None:
        raise ArgumentTypeError(f"must be of {', '.join(FEATURES)}, not {unknown!r}{suggestion(unknown, FEATURES)}")
    return names


def engine_list(text):
    """Engines of a core, with commas between the names, for the ``type`` of an argument."""
    names = tuple(dict.fromkeys(text.split(",")))
    unknown = next((name for name in names if name not in ENGINES), None)
    if unknown is not None:
        raise ArgumentTypeError(f"must be of {', '.join(ENGINES)}, not {unknown!r}{suggestion(unknown, ENGINES)}")
    return names


def top_component(top, preset, **options):
    """The component of a top with the parameters of :func:`top_params`.

    Amaranth no longer complains of components that are not elaborated.
    """
    # Ports and registers are read from components that nobody builds.
    warnings.filterwarnings("ignore", category=UnusedElaboratable)
    return TOPS[top].component(top_params(top, preset, **options))


def top_params(top, preset, without=(), engines=(), l2=False, cores=None, processors=1, settings=()):
    """The parameters of a top.

    Parameters
    ----------
    top, preset : str
    without : sequence of str
        Features of the access unit that are not built; UsageError if the others need them.
    engines : sequence of str
        What a core, or each core of a cluster, has, of ``hw.core.ENGINES``; none given: as in :data:`TOPS`. UsageError
        if there is no such core.
    l2 : bool
        The cluster has a second-level cache.
    cores : int or None
        Cores of the cluster.
    processors : int
        Processors that share an access unit; UsageError if a top has none, or other engines too.
    settings : sequence of Setting
        Parameters that differ from the preset; UsageError if the top has no such engine, or there is no such hardware.
    """
    params = TOPS[top].presets[preset]
    try:
        core = core_params(preset, engines) if engines else None
        if top == "core":
            params = core or params
        if top == "cluster":
            params = ClusterParams(cores or params.cores, core or params.core, L2Params() if l2 else None)
    except ValueError as error:
        raise UsageError(f"--engines {','.join(engines)}: {error}") from None
    require_groups(settings, groups_of(params))
    params = changed(params, settings)
    if processors > 1:
        core = getattr(params, "core", params)
        others = isinstance(core, CoreParams) and core.engines != ("tmau",)
        params = None if others else _with_access_unit(params, lambda tmau: tmau.replace(processors=processors))
        if params is None:
            raise UsageError(f"{processors} processors cannot share {top}: it has more than an access unit, or none")
    return _lacking(top, params, without) if without else params


def _with_access_unit(params, change):
    """The parameters of a top whose access units are what ``change`` makes of them; None if it has none."""
    match params:
        case TmauParams():
            return change(params)
        case ClusterParams():
            return params.replace(core=_with_access_unit(params.core, change))
        case CoreParams() if params.tmau:
            return params.replace(tmau=change(params.tmau))
    return None


def _lacking(top, params, names):
    """The parameters of a top without some features."""
    left_out = f"{', '.join(names)} cannot be left out"
    try:
        made = _with_access_unit(
            params, lambda tmau: tmau.replace(features=[name for name in tmau.features if name not in names])
        )
    except ValueError as error:
        raise UsageError(f"{left_out}: {error}") from None
    if made is None:
        raise UsageError(f"{left_out} of {top}: it has no access unit")
    return made


def top_verilog(top, preset, prefix=None, **options):
    """Verilog of a top, as :func:`to_verilog` makes it; kept, because elaboration takes up to a minute.

    Parameters
    ----------
    top, preset : str
    prefix : str or None
        As of :func:`module_name`.
    **options
        As of :func:`top_params`.
    """
    name = module_name(top, preset, prefix)
    component = top_component(top, preset, **options)
    make = partial(to_verilog, component, name)
    try:
        return kept_text(make, "top", top, name, component.params)
    except HostError:  # it is as good without having been kept
        return make()
