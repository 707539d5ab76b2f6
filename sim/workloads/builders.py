"""Models that a run needs, elaborated and built side by side, each in a process of its own."""

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
    """Builds what sessions need, so that they start at once afterwards.

    Parameters
    ----------
    jobs : dict of str to (callable, dict)
        By the names that are shown: a class of sessions and its options, which can be pickled.
    display : Bars or Lines

    Raises
    ------
    RuntimeError
        That of the first one that cannot be built; the others are given up.
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
    """A process that is started meanwhile never sees Ctrl-C: whoever waits for it does, and ends it."""
    # Begun with the first process otherwise, it would let the signal through again.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _pass_on(receiver, names, display):
    """Shows what a worker says; one that says no more is taken from ``names``."""
    try:
        stage, *far = receiver.recv()
    except EOFError:
        display.end(names.pop(receiver))
        return
    if stage is None:
        raise far[0]
    display.update(names[receiver], stage, *far)


class _Sender:
    """A display that sends what it is told to the process that waits, which gives it another name."""

    def __init__(self, pipe):
        self._pipe = pipe

    def update(self, name, *said):
        self._pipe.send(said)

    def end(self, name):
        pass

    def close(self):
        pass


def _build(pipe, make, options):
    """What a worker does: a session begins and ends. Its waveform is none that anybody wants."""
    signal.signal(signal.SIGTERM, _end)
    Thread(target=_end_with_parent, daemon=True).start()
    with ExitStack() as stack:
        # Python tries the place with a file, which an end at that moment would leave there.
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
    """An end that cleans up, takes compilers with it, and of which nothing is said."""
    signal.signal(number, signal.SIG_IGN)
    sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115 - as long as the process
    sys.exit(1)


def _end_with_parent():
    """Ends this process when the one that waits for it has been killed."""
    wait([multiprocessing.parent_process().sentinel])
    os.kill(os.getpid(), signal.SIGTERM)
