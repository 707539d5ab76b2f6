"""A Dask scheduler and its workers as processes, which a test may kill."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

__all__ = ["Processes", "dask_processes", "wait_until"]

_PATIENCE = 600  # seconds until a process has started, or something has happened, on a busy machine


class Processes:
    """What runs.

    Attributes
    ----------
    address : str
        Of the scheduler.
    scheduler : Popen
    workers : list of Popen
        Each with one thread; none is started again.
    """

    def __init__(self, folder, workers, environment):
        self._file, self._environment = folder / "scheduler.json", os.environ | environment
        self.workers = []
        self.scheduler = self._start("scheduler", "--port", "0", "--no-dashboard", "--host", "127.0.0.1")
        wait_until(self._file.exists)
        self.address = json.loads(self._file.read_text())["address"]
        for _ in range(workers):
            self.add_worker()

    def add_worker(self):
        """Starts another one."""
        self.workers.append(self._start("worker", "--no-nanny", "--nthreads", "1", "--no-dashboard",
                                        "--memory-limit", "0"))  # fmt: skip

    def _start(self, what, *options):
        command = [sys.executable, "-m", "dask", what, "--scheduler-file", str(self._file), *options]
        return subprocess.Popen(command, env=self._environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def kill(self, process):
        """Ends a process as the system ends it, without a chance to tidy up."""
        process.send_signal(signal.SIGKILL)
        process.wait()


@contextmanager
def dask_processes(folder, workers=2, **environment):
    """Processes with so many workers, for as long as the block lasts."""
    processes = Processes(folder, workers, environment)
    try:
        yield processes
    finally:
        for process in (*processes.workers, processes.scheduler):
            process.kill()
            process.wait()


def wait_until(happened):
    """Waits until a function returns a true value, which is returned; AssertionError if it takes minutes."""
    end = time.monotonic() + _PATIENCE
    while not (value := happened()):
        assert time.monotonic() < end, "nothing has happened"
        time.sleep(0.05)
    return value
