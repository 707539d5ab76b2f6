"""What takes long to build is built once: a folder for each content, whole or not there."""

import fcntl
import shutil
import tempfile
from pathlib import Path

__all__ = ["built_once", "complaint"]


def built_once(folder, make):
    """Makes ``folder`` unless it is there; whoever wants the same one at the same time waits and then finds it.

    Parameters
    ----------
    folder : Path
    make : callable
        Takes the path of an empty folder beside it, and leaves there what ``folder`` shall have.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if folder.exists():
            return
        unfinished = Path(tempfile.mkdtemp(dir=folder.parent, prefix="unfinished-"))
        try:
            make(unfinished)
            # From here on it is complete: the next one who looks may use it.
            unfinished.rename(folder)
        except BaseException:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise


def complaint(done):
    """The first line with an error in what a tool that failed has printed; a ``CompletedProcess`` with text."""
    output = (done.stderr + done.stdout).splitlines()
    reasons = [line for line in output if "rror" in line] or output or ["no message"]
    return reasons[0].strip()
