"""The simulators that a run of workloads needs, built in parallel, each in a process of its own."""

import multiprocessing
import os
import signal
import sys
import tempfile
from contextlib import ExitStack, contextmanager
from multiprocessing import resource_tracker
from multiprocessing.connection import wait
from pathlib import Path
from threading import Thread

from tilewright.hw.cluster.params import ClusterParams
from tilewright.hw.core.params import CORE_PRESETS, ENGINES, ProgramParams, core_params
from tilewright.processes import held_back
from tilewright.progress import shown

from ..hdl.settings import changed, groups_of, require_groups
from ..session import ClusterSession, Session
from ..session.core import NETWORK_BYTES
from . import WORKLOADS

__all__ = ["Machines", "build_side_by_side"]

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
    cores : int
        Of the machine with all engines.
    """

    def __init__(self, preset, simulator, small=False, waves=None, settings=(), cores=1):
        self._preset, self._simulator, self._settings, self._small = preset, simulator, settings, small
        self._waves, self._cores = waves or {}, cores
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
            if self._cores > 1:
                make, params = ClusterSession, ClusterParams(self._cores, params)
            memory = {"memory_bytes": NETWORK_BYTES}
        elif machine == "cluster":
            make, params = ClusterSession, self._cluster()
        else:
            params = core_params(self._preset, [machine])
            if workload.threads and not self._small:
                params = params.replace(pe=params.pe.replace(threads=workload.threads))
        params = changed(params, self._settings)
        return make, {"params": params, "simulator": self._simulator, "waves": self._waves.get(machine)} | memory


def build_side_by_side(jobs, display):
    """Builds the models of sessions, so that the sessions start at once afterwards.

    Parameters
    ----------
    jobs : dict of str to (callable, dict)
        By displayed name: a class of sessions and its options, which can be pickled.
    display : Bars or Lines

    Raises
    ------
    RuntimeError
        The error of the first model that cannot be built; the other builds are cancelled.
    """
    # Not forked: numpy has started threads.
    context = multiprocessing.get_context("spawn")
    workers, names = [], {}
    try:
        for name, (make, options) in jobs.items():
            receiver, sender = context.Pipe(duplex=False)
            worker = context.Process(target=_build, args=(sender, make, options))
            with held_back(), _deaf():
                worker.start()
                workers.append(worker)
            sender.close()
            names[receiver] = name
        while names:
            for receiver in wait(list(names)):
                _pass_on(receiver, names, display)
    finally:
        for worker in workers:
            worker.terminate()
            worker.join()


@contextmanager
def _deaf():
    """Processes started in this context ignore Ctrl-C: the waiting process handles it, and ends them."""
    # Otherwise the tracker would start with the first process, and unblock the signal again.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _pass_on(receiver, names, display):
    """Shows the messages of a worker; removes it from ``names`` when it has ended."""
    try:
        stage, *far = receiver.recv()
    except EOFError:
        display.end(names.pop(receiver))
        return
    if stage is None:
        raise far[0]
    display.update(names[receiver], stage, *far)


class _Sender:
    """A display that sends its messages to the waiting process, which shows them under the name of the worker."""

    def __init__(self, pipe):
        self._pipe = pipe

    def update(self, name, *said):
        self._pipe.send(said)

    def end(self, name):
        pass

    def close(self):
        pass


def _build(pipe, make, options):
    """The task of a worker: it starts a session and ends it. The waveform of that session is not kept."""
    signal.signal(signal.SIGTERM, _end)
    Thread(target=_end_with_parent, daemon=True).start()
    with ExitStack() as stack:
        # Python tests a folder by writing a file, which would remain there if the process ended at that moment.
        with held_back():
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="tilewright-"))
        if options.get("waves") is not None:
            options = options | {"waves": Path(folder) / Path(options["waves"]).name}
        try:
            with shown(_Sender(pipe)), make(**options):
                pass
        except RuntimeError as error:
            pipe.send((None, error))


def _end(number, frame):
    """Ends the worker quietly: it cleans up, and ends its compilers."""
    signal.signal(number, signal.SIG_IGN)
    sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115 - as long as the process
    sys.exit(1)


def _end_with_parent():
    """Ends this process when the waiting process has been killed."""
    wait([multiprocessing.parent_process().sentinel])
    os.kill(os.getpid(), signal.SIGTERM)
