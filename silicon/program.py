"""The replay program: finds or builds it, starts it as a child process, and sends it jobs."""

import hashlib
import shutil
import subprocess
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Timer

from tilewright.errors import UsageError
from tilewright.files import BUILD, built_once
from tilewright.sim.hdl.build import complaint
from tilewright.sim.replay.commands import shared_reach

from .packing import Status, pack
from .replies import Reply, read_hello, read_reply

__all__ = ["Program", "build", "open_program", "source_key"]

#: Folder of built programs, with a folder for each version of the sources.
CACHE = BUILD / "silicon"

_SOURCES = Path(__file__).parent / "cuda"
#: The folder of CUDA if it is not in PATH.
_CUDA = Path("/usr/local")
_OPTIONS = ["-arch=sm_90", "-std=c++17", "-O2"]
#: Seconds after which a job is cancelled.
_LIMIT = 120


@contextmanager
def open_program(command=None):
    """A running :class:`Program`; ``command`` is the command line that starts it, built from source if left out."""
    program = Program(command or [str(build("replay"))])
    try:
        yield program
    finally:
        program.close()


class Program:
    """The replay program as a child process. If it has lost the GPU's context, the next case restarts it.

    Parameters
    ----------
    command : list of str
        Command line.

    Attributes
    ----------
    hello : Hello
        The GPU.

    Raises UsageError if there is no suitable GPU.
    """

    def __init__(self, command):
        self._command = command
        self._process = None
        self._start()

    def run(self, case):
        """Runs a case for which :func:`.replay.why_not` returns None; returns its :class:`Reply`.

        A program that ends without a reply, or takes too long, gives FAILED. UsageError for a case that needs more
        shared memory than this GPU has.
        """
        reach, room = shared_reach(case), self.hello.shared_bytes
        if reach > room:
            raise UsageError(f"case {case.name!r} uses {reach} bytes of shared memory, and {self.hello.gpu} has {room}")
        if self._process is None:
            self._start()
        job = pack(case, self.hello.shared_bytes)
        alarm = Timer(_LIMIT, self._process.kill)
        alarm.start()
        try:
            self._write(job)
            reply = read_reply(self._read, case, self.hello.shared_bytes)
        except EOFError:
            reply = Reply(Status.FAILED, f"the program ended with status {self._process.wait()}")
        finally:
            alarm.cancel()
        if reply.status != Status.OK:
            self.close()
        return reply

    def close(self):
        """Ends the process if it runs."""
        if self._process is None:
            return
        process, self._process = self._process, None
        process.kill()
        process.wait()
        process.stdout.close()
        with suppress(BrokenPipeError):  # unwritten data does not matter any more
            process.stdin.close()

    def _start(self):
        self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            self.hello = self._greeted()
        except BaseException:
            self.close()
            raise

    def _greeted(self):
        try:
            hello = read_hello(self._read)
        except EOFError:
            raise UsageError(f"the replay program ended at once, with status {self._process.wait()}") from None
        if hello.status != Status.OK:
            raise UsageError(f"there is no GPU to replay on: {hello.message}")
        return hello

    def _write(self, job):
        """Sends a job. The program reads all of it before it answers, so there is no deadlock."""
        try:
            self._process.stdin.write(job)
            self._process.stdin.flush()
        except BrokenPipeError:
            raise EOFError from None

    def _read(self, count):
        data = self._process.stdout.read(count)
        if len(data) < count:
            raise EOFError
        return data


def build(name):
    """Path of the program made from ``name.cu`` of this folder, which is built if necessary.

    UsageError without nvcc, or if nvcc fails.
    """
    nvcc = _nvcc()
    source = _SOURCES / f"{name}.cu"
    version = subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=False).stdout
    folder = CACHE.resolve() / source_key(name, version)
    built_once(folder, lambda draft: _build(nvcc, source, draft))
    return folder / name


def source_key(name, *more):
    """A key for the sources of ``name.cu`` and further contents: other sources give another key."""
    texts = [path.read_text() for path in (_SOURCES / f"{name}.cu", *sorted(_SOURCES.glob("*.h")))]
    return hashlib.sha256("\0".join([*texts, *more, *_OPTIONS]).encode()).hexdigest()[:24]


def _build(nvcc, source, folder):
    command = [nvcc, *_OPTIONS, "-o", str(folder / source.stem), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise UsageError(f"nvcc could not build {source.name}: {complaint(done)}")


def _nvcc():
    """Path of the compiler: in PATH, or in the usual folder of CUDA."""
    places = [shutil.which("nvcc"), *sorted(_CUDA.glob("cuda*/bin/nvcc"))]
    nvcc = next(filter(None, places), None)
    if nvcc is None:
        raise UsageError("nvcc, which builds the replay program, is neither in PATH nor in /usr/local/cuda/bin")
    return str(nvcc)
