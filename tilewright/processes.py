"""Child processes that end with us: a command that is interrupted leaves none behind."""

import os
import signal
import subprocess
from contextlib import ExitStack, contextmanager, suppress
from threading import Event, current_thread, main_thread

__all__ = ["Interrupted", "end_children", "end_with_signals", "held_back", "run_process", "running"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_PATIENCE = 2  # seconds for a child to end its own children
#: Process groups of the children that run.
_groups = set()
#: Set from a signal on until all has been tidied up.
_ending = Event()
#: The signal that set it.
_number = None


class Interrupted(KeyboardInterrupt):
    """A signal asked us to end; ``status`` is the exit status that says so."""

    def __init__(self, number):
        super().__init__()
        self.status = 128 + number


def run_process(command, *, timeout=None, **options):
    """Runs a program to its end; returns the ``CompletedProcess`` with what it printed, as text.

    ``options`` are of ``subprocess.Popen``.

    Raises
    ------
    subprocess.TimeoutExpired
        If it still ran after ``timeout`` seconds. It has been ended then, with all that it started.
    """
    with running(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options) as process:
        output, errors = process.communicate(timeout=timeout)
    return subprocess.CompletedProcess(command, process.returncode, output, errors)


@contextmanager
def running(command, **options):
    """A program as long as the block lasts, at whose end it is waited for; yields the ``Popen``.

    It leads a process group, so that all it starts ends with it where the block is left by an exception, or the main
    thread by a signal. Other threads cannot start any more then.
    """
    if _ending.is_set():
        raise Interrupted(_number)
    with ExitStack() as stack:
        with held_back():
            process = stack.enter_context(
                subprocess.Popen(command, stdin=subprocess.DEVNULL, process_group=0, **options)
            )
            stack.enter_context(_ended_with_block(process))
        if _ending.is_set():  # since it was looked at: nobody has ended the child of another thread yet
            raise Interrupted(_number)
        yield process
        process.wait()


@contextmanager
def held_back():
    """Signals to end that come while this lasts take effect at its end: what is begun is also noted.

    Python can act upon one between any two steps, as between the start of a child and the note of its number. Only
    what Python would run is held back, and that only in the main thread, where it would run it.
    """
    if current_thread() is not main_thread():
        yield
        return
    came = []
    before = {number: handler for number in _SIGNALS if callable(handler := signal.getsignal(number))}
    try:
        for number in before:
            signal.signal(number, lambda *what: came.append(what))
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for number, frame in came[:1]:
            before[number](number, frame)


@contextmanager
def _ended_with_block(process):
    """Ends a process, and all it has started, where the block is left by an exception."""
    _groups.add(process.pid)
    try:
        yield
    except BaseException:
        _end(process.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_PATIENCE)
        _end(process.pid, signal.SIGKILL)
        raise
    finally:
        _groups.discard(process.pid)


@contextmanager
def end_with_signals():
    """While this lasts, the signals to end (Ctrl-C, or of ``kill``) end all children and raise :class:`Interrupted`.

    That also takes the place of what it became on its way: compiled modules that are being imported make another
    exception of it.
    """
    if current_thread() is not main_thread():  # only the main thread receives signals
        yield
        return
    before = {number: signal.signal(number, _interrupt) for number in _SIGNALS}
    try:
        yield
    except Exception:
        if _ending.is_set():
            raise Interrupted(_number) from None
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        _ending.clear()


def end_children():
    """Ends all children, with what they have started; what waits for them goes on."""
    for group in list(_groups):
        _end(group, signal.SIGTERM)


def _interrupt(number, frame):
    global _number
    # Whoever is impatient while we tidy up is obeyed at once.
    for each in _SIGNALS:
        signal.signal(each, lambda number, frame: os._exit(128 + number))
    _number = number
    _ending.set()
    end_children()
    raise Interrupted(number)


def _end(group, number):
    with suppress(ProcessLookupError):
        os.killpg(group, number)
