"""Builds the simulation models of a run in parallel, each in a process of its own."""

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

from tilewright.processes import held_back
from tilewright.progress import shown

__all__ = ["build_side_by_side"]


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
