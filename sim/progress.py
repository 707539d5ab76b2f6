"""What long work is doing: said where it is done, and shown to whoever waits for it.

Whoever does the work names it with :func:`work` and calls :func:`report`; a command line chooses with :func:`shown` how
it is shown. Without that there are bars on a terminal, as for a session in a script, and nothing anywhere else.
"""

import sys
import time
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["Bars", "Lines", "report", "shown", "work"]

_SECONDS = 5

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


class Lines:
    """A line for every stage, and one every few seconds that says how far it is.

    Parameters
    ----------
    stream : text file
    """

    def __init__(self, stream):
        self._stream = stream
        self._said = {}

    def update(self, name, stage, done, total):
        """Says it, unless the same was said just before."""
        now = time.monotonic()
        before, when = self._said.get(name, (None, now))
        if stage == before and now - when < _SECONDS:
            return
        far = f", {done:,} of {total:,}" if total else f", {done:,}" if done else ""
        print(f"{name}: {stage}{far}", file=self._stream, flush=True)
        self._said[name] = stage, now

    def end(self, name):
        """Nothing more comes of ``name``."""
        self._said.pop(name, None)

    def close(self):
        """Nothing more comes."""


class Bars:
    """A bar for each work on the terminal behind standard error, which goes when the work has ended."""

    def __init__(self):
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        self._bars = Progress(
            TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[far]}"), TimeElapsedColumn(),
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
