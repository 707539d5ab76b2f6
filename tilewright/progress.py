"""What long work is doing: said where it is done, and shown to whoever waits for it.

Whoever does the work names it with :func:`work` and calls :func:`report`; a command line chooses with :func:`shown` how
it is shown. Without that there are bars on a terminal, as for a session in a script, and nothing anywhere else.
"""

import importlib.util
import sys
import time
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Event, Lock, Thread

__all__ = ["Bars", "Lines", "counted", "report", "shown", "work", "working"]

#: After how long a line says how far work is, and after how long without news one says that it goes on.
_SECONDS = 5
_SILENCE = 15

#: The display, of all threads, and the name of the work that goes on in this one; None if there is none.
_display = None
_name = ContextVar("name", default=None)


@contextmanager
def shown(display):
    """Shows on ``display`` what is reported meanwhile, and closes it at the end."""
    global _display
    before, _display = _display, display
    try:
        yield display
    finally:
        _display = before
        display.close()


@contextmanager
def work(name):
    """What is reported meanwhile is about ``name``."""
    if _display is None and sys.stderr.isatty():
        with shown(Bars()), work(name):
            yield
        return
    before = _name.set(name)
    try:
        yield
    finally:
        if _display is not None:
            _display.end(name)
        _name.reset(before)


@contextmanager
def working(name):
    """For a command: shows on standard error what is reported meanwhile about ``name``.

    There are bars on a terminal, if the package for them is installed, and lines elsewhere.
    """
    bars = sys.stderr.isatty() and importlib.util.find_spec("rich")
    with shown(Bars() if bars else Lines(sys.stderr)), work(name):
        yield


def report(stage, done=0, total=None):
    """Says what is being done, and how far it is.

    Parameters
    ----------
    stage : str
        A word or two.
    done, total : int
        Parts that are done, and all of them; None if nobody can tell.
    """
    name = _name.get()
    if _display is not None and name is not None:
        _display.update(name, stage, done, total)


def counted(stage, items):
    """Yields each of a sequence, and reports how many have been done."""
    for done, item in enumerate(items):
        report(stage, done, len(items))
        yield item


class Lines:
    """A line for every stage, and one every few seconds that says how far it is, or that it goes on.

    Parameters
    ----------
    stream : text file
    """

    def __init__(self, stream):
        self._stream = stream
        self._said = {}  # by name: stage, when it began, when the last line came, parts done when it began
        self._lock, self._closed = Lock(), Event()
        self._clock = None

    def update(self, name, stage, done, total):
        """Says it, unless the same was said just before."""
        now = time.monotonic()
        with self._lock:
            before, began, said, first = self._said.get(name, (None, now, now, done))
            if stage == before and now - said < _SECONDS:
                return
            if stage != before:
                began, first = now, done
            far = f", {done:,} of {total:,}" if total else f", {done:,}" if done else ""
            self._say(f"{name}: {stage}{far}{_left(done - first, (total or done) - done, now - began)}")
            self._said[name] = stage, began, now, first
            if self._clock is None:
                self._clock = Thread(target=self._remind_always, daemon=True)
                self._clock.start()

    def remind(self, now):
        """Says of what has been silent for long that it goes on, and for how many seconds."""
        with self._lock:
            for name, (stage, began, said, first) in self._said.items():
                if now - said >= _SILENCE:
                    self._say(f"{name}: {stage}, {now - began:.0f} s")
                    self._said[name] = stage, began, now, first

    def end(self, name):
        """Nothing more comes of ``name``."""
        with self._lock:
            self._said.pop(name, None)

    def close(self):
        """Nothing more comes."""
        self._closed.set()

    def _say(self, line):
        print(line, file=self._stream, flush=True)

    def _remind_always(self):
        while not self._closed.wait(_SECONDS):
            self.remind(time.monotonic())


def _left(done, rest, seconds):
    """How long the rest takes if it goes on like this; empty while nobody can tell."""
    if not done or not rest or seconds * rest < _SILENCE * done:
        return ""
    left = seconds * rest / done
    for size, unit, least in ((3600, "h", 2), (60, "min", 2), (1, "s", 0)):
        if left >= least * size:
            return f", {left / size:.0f} {unit} left"
    return ""


class Bars:
    """A bar for each work on the terminal behind standard error, which goes when the work has ended."""

    def __init__(self):
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        self._bars = Progress(
            TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[far]}"), TimeElapsedColumn(),
            TextColumn("left"), TimeRemainingColumn(),
            console=Console(stderr=True), transient=True, redirect_stdout=sys.stdout.isatty(),
        )  # fmt: skip
        self._tasks = {}

    def update(self, name, stage, done, total):
        """Moves the bar of ``name``; it only says that something goes on if there is no total."""
        far = f"{done:,} of {total:,}" if total else f"{done:,}" if done else ""
        description = f"{name}: {stage}"
        before = self._tasks.get(name)
        if before is None:
            task = self._bars.add_task(description, completed=done, total=total, far=far)
            self._bars.start()
        else:
            task, last = before
            # What is new is shown at once, the rest ten times a second.
            options = {"completed": done, "total": total, "far": far, "refresh": stage != last}
            self._bars.update(task, description=description, **options)
        self._tasks[name] = task, stage

    def end(self, name):
        """Takes the bar of ``name`` away."""
        if name in self._tasks:
            self._bars.remove_task(self._tasks.pop(name)[0])

    def close(self):
        """Takes everything away."""
        self._bars.stop()
