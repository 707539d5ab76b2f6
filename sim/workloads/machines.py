"""The simulators that a run of workloads needs."""

from contextlib import ExitStack

from tilewright.hw.pe.params import PE_PRESETS

from ..session import PeSession, TmauSession
from ..usage import UsageError
from . import ENGINE_THREADS, MOVING

__all__ = ["Machines"]


class Machines:
    """Sessions of one configuration, each started when a workload first needs it; a context manager.

    Parameters
    ----------
    preset, simulator : str
    small : bool
        Simulation is slow: no engine has more threads than the preset's.
    waves : dict of str to Path
        Where to leave waveforms of the mover (``"tmau"``) and of the engine (``"pe"``); empty for none.
    """

    def __init__(self, preset, simulator, small=False, waves=None):
        self._preset, self._simulator, self._small = preset, simulator, small
        self._waves = waves or {}
        self._sessions = {}
        self._stack = ExitStack()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self._stack.close()

    def session(self, name):
        """The session for the workload ``name``; UsageError if a tool is missing."""
        if name in MOVING:
            return self._started("tmau", TmauSession, self._preset)
        params = PE_PRESETS[self._preset]
        if not self._small:
            params = params.replace(threads=ENGINE_THREADS.get(name, params.threads))
        return self._started("pe", PeSession, params=params)

    def _started(self, machine, make, *args, **options):
        key = (machine, *args, *options.values())
        if key not in self._sessions:
            try:
                session = make(*args, simulator=self._simulator, waves=self._waves.get(machine), **options)
            except RuntimeError as error:  # a tool is missing
                raise UsageError(str(error)) from None
            self._sessions[key] = self._stack.enter_context(session)
        return self._sessions[key]
