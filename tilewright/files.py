"""Files and folders that are there whole or not at all: made beside their place, and then moved to it."""

import fcntl
import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path

from .errors import HostError

__all__ = ["BUILD", "REPORT", "built_once", "writable", "write_atomically"]

#: Folder of everything that is built; the environment variable ``TILEWRIGHT_BUILD`` names another one.
BUILD = Path(os.environ.get("TILEWRIGHT_BUILD") or "build")

#: Folder of the report of the last simulation.
REPORT = BUILD / "report"

_UNFINISHED = ".unfinished"


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


@contextmanager
def writable(folder):
    """Makes ``folder`` unless it is there, for what is written in it meanwhile.

    Raises
    ------
    HostError
        If nothing can be written in it, or no more; one sentence.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Found out before the work is done whose result it shall hold.
        tempfile.TemporaryFile(dir=folder).close()
        yield
    except OSError as error:
        raise HostError(
            f"nothing can be built in {folder}: {error.strerror or error}; TILEWRIGHT_BUILD names another build folder"
        ) from None


def built_once(folder, make):
    """Makes ``folder`` unless it is there; who needs the same one at the same time waits and then finds it.

    A folder that is there is used without anything being written. What a process that was killed has left beside it is
    removed when something is made there again.

    Parameters
    ----------
    folder : Path
    make : callable
        Takes the path of an empty folder beside it, and leaves there what ``folder`` shall have.

    Raises
    ------
    HostError
        If nothing can be written there, or no more; one sentence.
    """
    if folder.exists():
        return
    with writable(folder.parent):
        for draft in folder.parent.glob(f"*{_UNFINISHED}"):
            _remove_unless_in_use(draft)
        while not folder.exists():
            _make(folder, make)


def _make(folder, make):
    """Makes ``folder``, or finds that somebody else was at it."""
    draft = folder.with_name(folder.name + _UNFINISHED)
    draft.mkdir(exist_ok=True)
    with _locked(draft) as held:
        # Of a process that was killed; another one that it had started may still write there.
        if held and any(draft.iterdir()):
            shutil.rmtree(draft)
        elif held:
            try:
                make(draft)
                # From here on it is complete, and may be used.
                draft.rename(folder)
            except BaseException:
                shutil.rmtree(draft, ignore_errors=True)
                raise


def _remove_unless_in_use(draft):
    with _locked(draft, wait=False) as held:
        if held:
            shutil.rmtree(draft, ignore_errors=True)


@contextmanager
def _locked(draft, *, wait=True):
    """Yields whether ``draft`` belongs to this process alone until the end; the system unlocks it for one that dies."""
    try:
        handle = os.open(draft, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        yield False
        return
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Whoever had it before may have moved it to its place, or removed it.
            held = os.path.samestat(os.fstat(handle), draft.stat())
        except (BlockingIOError, FileNotFoundError):
            held = False
        yield held
    finally:
        os.close(handle)
