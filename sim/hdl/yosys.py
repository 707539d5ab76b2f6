"""Yosys, in a process of its own: it prints every command, and ends the process on an error."""

import os
import sys
import tempfile
from pathlib import Path

from ..processes import run_process

__all__ = ["run_yosys", "yosys"]

_DIFFERS = "ABC: Networks are NOT EQUIVALENT"
_PROGRAM = "import sys; from pyosys import libyosys; libyosys.run_pass('script ' + sys.argv[1])"


def yosys(folder, script):
    """Runs the lines of ``script`` in ``folder``; returns the ``CompletedProcess`` with all that was printed."""
    (Path(folder) / "make.ys").write_text(script + "\n")
    command = [sys.executable, "-c", _PROGRAM, "make.ys"]
    # Python finds another place where TMPDIR names none, and Yosys would not.
    return run_process(command, cwd=folder, env=os.environ | {"TMPDIR": tempfile.gettempdir()})


def run_yosys(folder, script, purpose):
    """Runs the lines of ``script`` in ``folder``.

    Raises
    ------
    RuntimeError
        If Yosys refuses, with its last words: "Yosys could not <purpose>: …". If ABC, which compares what it has made
        with what it was given, finds a difference: Yosys only prints that, and goes on.
    """
    done = yosys(folder, script)
    if done.returncode:
        raise RuntimeError(f"Yosys could not {purpose}: {(done.stderr.strip() or done.stdout.strip())[-500:]}")
    if _DIFFERS in done.stdout:
        raise RuntimeError(f"Yosys could not {purpose}: what ABC has made of it does something else")
