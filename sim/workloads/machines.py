"""The simulators that a run of workloads needs."""

from contextlib import ExitStack

from tilewright.hw.cluster.params import ClusterParams
from tilewright.hw.conv.params import CONV_UNIT_PRESETS
from tilewright.hw.core import CORE_PRESETS, ProgramParams
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.hw.tmau.params import TMAU_PRESETS

from ..hdl.settings import changed, groups_of, require_groups
from ..session import ConvSession, PeSession, TmauSession
from ..session.accelerator import NETWORK_BYTES, AcceleratorSession, accelerator_params
from ..session.cluster import ClusterSession
from . import CONVOLVING, ENGINE_THREADS, MOVING, RUNNING, SHARING
from .builders import build_side_by_side

__all__ = ["Machines"]

#: Cores of a cluster, and the most threads of each of its engines: four engines of 256 threads take too long to build.
_CORES, _MOST_THREADS = 4, 16


class Machines:
    """Sessions of one configuration, each started when a workload first needs it; a context manager.

    Parameters
    ----------
    preset, simulator : str
    small : bool
        Simulation is slow: engines have at most as many threads as in the preset.
    waves : dict of str to Path
        Files for waveforms of the mover (``"tmau"``), of the engines (``"pe"``, ``"conv"``), of the cluster and of
        all engines together (``"accelerator"``); empty for none.
    settings : sequence of Setting
        Parameters that differ from the preset, for the machines that have them.
    """

    def __init__(self, preset, simulator, small=False, waves=None, settings=()):
        self._preset, self._simulator, self._settings, self._small = preset, simulator, settings, small
        self._waves = waves or {}
        self._sessions = {}
        self._stack = ExitStack()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self._stack.close()

    def prepare(self, names, display):
        """Builds the simulators of the workloads ``names`` in parallel.

        Raises
        ------
        HostError
            If a tool is missing.
        UsageError
            If no machine has the engine of a setting.
        """
        jobs, groups = {}, {}
        for make, options in map(self._job, names):
            jobs[self._name(make, options)] = make, options
            groups |= groups_of(options.get("params") or accelerator_params(self._preset))
        require_groups(self._settings, groups)
        # A single one is built when its session begins.
        if len(jobs) > 1:
            build_side_by_side(jobs, display)

    def session(self, name):
        """The session for the workload ``name``; HostError if a tool is missing."""
        make, options = self._job(name)
        key = (make, options.get("params"))
        if key not in self._sessions:
            self._sessions[key] = self._stack.enter_context(make(**options))
        return self._sessions[key]

    @staticmethod
    def _name(make, options):
        """The name of a machine on the display of the build."""
        if make is PeSession:
            return f"pe of {options['params'].threads} threads"
        return {TmauSession: "tmau", ConvSession: "conv", ClusterSession: "cluster"}.get(make, "accelerator")

    def _cluster(self):
        """Parameters of the cluster."""
        core = CORE_PRESETS[self._preset]
        pe = core.pe.replace(threads=min(core.pe.threads, _MOST_THREADS))
        return ClusterParams(_CORES, core.replace(pe=pe, program=ProgramParams()))

    def _job(self, name):
        """Class and options of the session for a workload."""
        if name in RUNNING:
            return AcceleratorSession, {
                "preset": self._preset, "settings": self._settings, "memory_bytes": NETWORK_BYTES,
                "simulator": self._simulator, "waves": self._waves.get("accelerator"),
            }  # fmt: skip
        if name in MOVING:
            make, machine, params = TmauSession, "tmau", TMAU_PRESETS[self._preset]
        elif name in SHARING:
            make, machine, params = ClusterSession, "cluster", self._cluster()
        elif name in CONVOLVING:
            make, machine, params = ConvSession, "conv", CONV_UNIT_PRESETS[self._preset]
        else:
            make, machine, params = PeSession, "pe", PE_PRESETS[self._preset]
            if not self._small:
                params = params.replace(threads=ENGINE_THREADS.get(name, params.threads))
        params = changed(params, self._settings)
        return make, {"params": params, "simulator": self._simulator, "waves": self._waves.get(machine)}
