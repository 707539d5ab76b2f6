"""One point of an exploration: hardware, memory and a workload; how a worker builds, measures and maps it."""

import tempfile
from dataclasses import dataclass
from pathlib import Path

from tilewright.errors import HostError, UsageError
from tilewright.hw.core.top import Core
from tilewright.hw.pe.top import Pe
from tilewright.hw.tmau.top import Tmau
from tilewright.workers import key_of

from ..fpga.flow import map_flat
from ..fpga.netlist import cell_counts, depth_figures
from .workloads import KINDS

__all__ = ["Area", "Point", "build", "map_area", "measure"]

_FAMILY = "ecp5"


@dataclass(frozen=True)
class Point:
    """A point of a space.

    Attributes
    ----------
    preset : str
    settings : tuple of Setting
        Parameters that differ from the preset.
    latency : int
        Cycles of the memory.
    workload : str
        As :func:`workload_names` returns it.
    seed : int
        Of random inputs.
    """

    preset: str
    settings: tuple
    latency: int
    workload: str
    seed: int

    @property
    def kind(self):
        """The :class:`Kind` of the workload."""
        return KINDS[self.workload.partition(": ")[0]]

    @property
    def name(self):
        """The workload without its kind."""
        return self.workload.partition(": ")[2]

    @property
    def hardware(self):
        """What a model is built for, or None. ValueError, or UsageError, if there is no such hardware."""
        return self.kind.hardware(self)

    @property
    def key(self):
        """A word for the point, the sources and the file that it reads."""
        path = Path(self.name)
        return key_of("point", self, path.read_bytes() if path.is_absolute() else b"")

    @property
    def design(self):
        """What the preset is changed to, in the words of the command line."""
        return ", ".join((self.preset, *map(str, self.settings)))


@dataclass(frozen=True)
class Area:
    """The hardware of points, to be mapped.

    Attributes
    ----------
    params : CoreParams
    """

    params: object

    @property
    def key(self):
        """A word for the hardware and the sources."""
        return key_of("area", self)


def _failures_of(work):
    """The record of ``work()``, or why there is none; what is wrong with the machine is raised."""
    try:
        return work()
    except HostError:
        raise
    except (RuntimeError, UsageError, ValueError) as error:
        return {"failure": " ".join(str(error).split())}


def build(hardware):
    """Builds the model of some hardware, unless this machine has it: a record without figures."""

    def make():
        with hardware.open(latency=100):
            return {}

    return _failures_of(make)


def measure(point, built=None):
    """Figures of a point; ``built`` is the record of :func:`build` of its hardware, or None if it needs none."""
    if built and "failure" in built:
        return {"failure": built["failure"]}

    def run():
        hardware = point.hardware
        if hardware is None:
            return point.kind.run(point, None)
        with hardware.open(point.latency) as session:
            return point.kind.run(point, session)

    return _failures_of(run)


def map_area(area):
    """Cells and levels of the hardware's top, mapped by Yosys for a Lattice ECP5, as ``tilewright area --flat``."""

    def run():
        params = area.params
        tops = {("tmau",): lambda: Tmau(params.tmau), ("pe",): lambda: Pe(params.pe)}
        with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
            module = map_flat(tops.get(params.engines, lambda: Core(params))(), _FAMILY, folder).module
        return cell_counts(module, _FAMILY) | {"levels": depth_figures(module)["levels"]}

    return _failures_of(run)
