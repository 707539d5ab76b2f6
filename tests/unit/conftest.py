"""Processes of a command, found again wherever they were moved to."""

import os
import time
from pathlib import Path

import pytest


class Mark:
    """A variable of the environment that a command and all it starts inherit.

    Attributes
    ----------
    environment : dict of str to str
        For the command.
    """

    def __init__(self, value):
        self.environment = os.environ | {"TILEWRIGHT_MARK": value}
        self._entry = f"TILEWRIGHT_MARK={value}".encode()

    def lines(self):
        """Command lines of the processes that have it."""
        found = []
        for path in Path("/proc").glob("[0-9]*"):
            try:
                if self._entry in (path / "environ").read_bytes().split(b"\0"):
                    found.append((path / "cmdline").read_bytes())
            except OSError:  # it has ended, or is of somebody else
                pass
        return found

    def left(self):
        """Command lines of those that do not end: a busy machine takes its time until one that was killed is gone."""
        for _ in range(100):
            if not self.lines():
                break
            time.sleep(0.05)
        return self.lines()


@pytest.fixture
def mark(tmp_path):
    """A mark of this test alone."""
    return Mark(str(tmp_path))
