"""Yosys, in a process of its own: it prints every command, and ends the process on an error."""

import subprocess
import sys
from pathlib import Path

__all__ = ["run_yosys"]

_PROGRAM = "import sys; from pyosys import libyosys; libyosys.run_pass('script ' + sys.argv[1])"


def run_yosys(folder, script, purpose):
    """Runs the lines of ``script`` in ``folder``.

    Raises
    ------
    RuntimeError
        If Yosys refuses, with its last words: "Yosys could not <purpose>: …".
    """
    (Path(folder) / "make.ys").write_text(script + "\n")
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, "make.ys"], cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"Yosys could not {purpose}: {(done.stderr + done.stdout).strip()[-500:]}")
