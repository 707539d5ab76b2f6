"""Files and folders that are there whole or not at all: made beside their place, and then moved to it."""

import fcntl
import os
import shutil
import tempfile
from pathlib import Path

__all__ = ["BUILD", "built_once", "write_atomically"]

#: Folder of everything that is built; the environment variable ``TILEWRIGHT_BUILD`` names another one.
BUILD = Path(os.environ.get("TILEWRIGHT_BUILD") or "build")


def write_atomically(path, contents):
    """Replaces the file ``path`` by ``contents``, text or bytes, all of it or nothing; makes the folder.

    A reader never sees half a file, and writers at the same time do not mix theirs. An OSError names ``path``.
    """
    path, data = Path(path), contents.encode() if isinstance(contents, str) else contents
    try:
        if path.exists() and not path.is_file():  # a device or a pipe is written to, and not replaced
            path.write_bytes(data)
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".unfinished-")
        draft = Path(name)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            draft.chmod(0o644)
            draft.replace(path)
        except BaseException:
            draft.unlink()
            raise
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None


def built_once(folder, make):
    """Makes ``folder`` unless it is there; who needs the same one at the same time waits and then finds it.

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
        draft = Path(tempfile.mkdtemp(dir=folder.parent, prefix="unfinished-"))
        try:
            make(draft)
            # From here on it is complete, and may be used.
            draft.rename(folder)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
