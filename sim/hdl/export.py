"""The tops that users get: their components, presets, names and Verilog."""

import re
import warnings
from functools import partial
from typing import NamedTuple

from amaranth.hdl import UnusedElaboratable

from tilewright.hw.core.params import CORE_PRESETS
from tilewright.hw.core.top import Core
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.hw.pe.subsystem import PeSubsystem
from tilewright.hw.pe.top import Pe
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.hw.tmau.subsystem import TmauSubsystem
from tilewright.hw.tmau.top import Tmau

from ..usage import HostError
from .designs import kept_text
from .verilog import to_verilog

__all__ = ["TOPS", "Top", "module_name", "top_component", "top_verilog"]

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
    "tmau_subsystem": Top(TmauSubsystem, TMAU_PRESETS),
    "pe": Top(Pe, PE_PRESETS),
    "pe_subsystem": Top(PeSubsystem, PE_PRESETS),
    "core": Top(Core, CORE_PRESETS),
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


def top_component(top, preset):
    """The component of a top. Amaranth no longer complains of components that are not elaborated."""
    # Ports and registers are read from components that nobody builds.
    warnings.filterwarnings("ignore", category=UnusedElaboratable)
    component, presets = TOPS[top]
    return component(presets[preset])


def top_verilog(top, preset, prefix=None):
    """Verilog of a top, as :func:`to_verilog` makes it; kept, because elaboration takes up to a minute."""
    name = module_name(top, preset, prefix)
    make = partial(to_verilog, top_component(top, preset), name)
    try:
        return kept_text(make, "top", top, preset, name)
    except HostError:  # it is as good without having been kept
        return make()
