"""The simulators that a run of workloads needs."""

from contextlib import ExitStack

from tilewright.hw.cluster.params import ClusterParams
from tilewright.hw.core.params import CORE_PRESETS, ENGINES, ProgramParams, core_params

from ..hdl.settings import changed, groups_of, require_groups
from ..session import ClusterSession, Session
from ..session.core import NETWORK_BYTES
from . import WORKLOADS
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
            jobs[self._name(options["params"])] = make, options
            groups |= groups_of(options["params"])
        require_groups(self._settings, groups)
        # A single one is built when its session begins.
        if len(jobs) > 1:
            build_side_by_side(jobs, display)

    def session(self, name):
        """The session for the workload ``name``; HostError if a tool is missing."""
        make, options = self._job(name)
        if options["params"] not in self._sessions:
            self._sessions[options["params"]] = self._stack.enter_context(make(**options))
        return self._sessions[options["params"]]

    @staticmethod
    def _name(params):
        """The name of a machine on the display of the build."""
        if isinstance(params, ClusterParams):
            return "cluster"
        if params.engines == ("pe",):
            return f"pe of {params.pe.threads} threads"
        return params.engines[0] if len(params.engines) == 1 else "accelerator"

    def _cluster(self):
        """Parameters of the cluster."""
        core = CORE_PRESETS[self._preset]
        pe = core.pe.replace(threads=min(core.pe.threads, _MOST_THREADS))
        return ClusterParams(_CORES, core.replace(pe=pe, program=ProgramParams()))

    def _job(self, name):
        """Class and options of the session for a workload."""
        workload = WORKLOADS[name]
        make, machine, memory = Session, workload.machine, {}
        if machine == "accelerator":
            params = core_params(self._preset, ENGINES)
            memory = {"memory_bytes": NETWORK_BYTES}
        elif machine == "cluster":
            make, params = ClusterSession, self._cluster()
        else:
            params = core_params(self._preset, [machine])
            if workload.threads and not self._small:
                params = params.replace(pe=params.pe.replace(threads=workload.threads))
        params = changed(params, self._settings)
        return make, {"params": params, "simulator": self._simulator, "waves": self._waves.get(machine)} | memory
