"""Work on many processes or machines, by Dask: each result is kept as it comes, and an interrupted run goes on.

Dask schedules, watches the workers, and gives the work of one that dies to another. What is here says what the work is,
keeps its results in files, and makes one sentence of what goes wrong.
"""

import hashlib
import json
import logging
import os
import time
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from .errors import HostError, UsageError
from .files import write_atomically
from .processes import end_children
from .progress import report

__all__ = ["Records", "add_workers", "connected", "key_of", "sources_digest", "worked"]

#: Folders of the package whose sources decide results.
_ROOMS = ("spec", "golden", "hw", "sim", "network", "verify", "tools")
#: Variable that says how many compilers a worker starts at a time (sim/hdl/build.py).
_JOBS = "TILEWRIGHT_JOBS"


def add_workers(parser):
    """Adds the arguments that say who works."""
    from .arguments import integer

    parser.add_argument("--scheduler", metavar="ADDRESS", help="a running Dask scheduler, as tcp://host:8786")
    parser.add_argument("--workers", type=integer(1, 1024), help="processes on this machine; one a core if left out")


@contextmanager
def connected(scheduler=None, workers=None):
    """A ``distributed.Client``: of a scheduler that runs and has a worker, or of worker processes on this machine while
    this lasts.

    Parameters
    ----------
    scheduler : str or None
        Address of a scheduler; its workers need the same sources.
    workers : int or None
        Processes on this machine; as many as it has cores if None.

    Raises
    ------
    UsageError
        If both are given, or no scheduler answers.
    """
    from distributed import Client, LocalCluster

    if scheduler and workers:
        raise UsageError("--workers are processes on this machine: a scheduler has its own")
    for name in ("distributed", "asyncio"):  # they report with tracebacks what is said in one sentence here
        logging.getLogger(name).setLevel(logging.CRITICAL)
    if scheduler:
        try:
            client = Client(scheduler, set_as_default=False)
        except (OSError, ValueError) as error:
            raise UsageError(f"no scheduler answers at {scheduler}: {' '.join(str(error).split())}") from None
        with client:
            client.wait_for_workers(1)
            yield client
        return
    options = {"processes": True, "threads_per_worker": 1, "dashboard_address": ":0", "memory_limit": None}
    # A worker has one core, and so have its compilers.
    options |= {"silence_logs": logging.CRITICAL, "env": {_JOBS: "1"}}
    with LocalCluster(n_workers=workers or os.cpu_count(), **options) as cluster:
        with Client(cluster, set_as_default=False) as client:
            client.register_plugin(_without_orphans())
            yield client


def _without_orphans():
    """A plugin of workers that end: their compilers and simulators end with them."""
    from distributed import WorkerPlugin

    class Plugin(WorkerPlugin):
        def teardown(self, worker):
            end_children()

    return Plugin()


def worked(client, submit, items, records, stage):
    """Yields each item with its record, as they come: those that are kept already, then new ones.

    Parameters
    ----------
    client : distributed.Client
    submit : callable
        Takes ``run`` and an item, and returns the future of ``run(function, item, …)``, which submits work to Dask: of
        a function of the item and of results of other futures that returns a record, a dictionary of JSON's types.
    items : sequence
        Each with a ``key``, of :func:`key_of`.
    records : Records
    stage : str
        What progress calls them.

    Raises
    ------
    HostError
        If a worker cannot work (its disk is full, for example), has other sources, or the scheduler is gone.
    """
    from distributed import as_completed

    digest, pending, known = sources_digest(), {}, []

    def run(function, *arguments):
        return client.submit(_work, digest, function, *arguments, pure=False)

    for item in items:
        record = records.read(item.key)
        if record is None:
            pending[submit(run, item)] = item
        else:
            known.append((item, record))
    yield from known
    done = len(known)
    waiting = as_completed(pending, loop=client.loop)
    while pending:
        report(stage, done, len(items))
        with _one_sentence(client, done, len(items), records):
            future = next(waiting)
            record, kept = _result(future)
        item = pending.pop(future)
        if kept:
            records.write(item.key, record)
        done += 1
        yield item, record
    report(stage, done, len(items))


def _result(future):
    """The record of a future, and whether it is kept: a worker that died may not die the next time."""
    from distributed import KilledWorker

    try:
        return future.result(), True
    except KilledWorker as error:
        return {"failure": f"{error.allowed_failures + 1} workers died of it", "seconds": 0.0}, False


@contextmanager
def _one_sentence(client, done, total, records):
    """Makes one sentence of what stops all of the work."""
    from distributed.client import CancelledError
    from distributed.comm import CommClosedError

    try:
        yield
    except (CancelledError, CommClosedError, StopIteration, TimeoutError):
        raise HostError(
            f"the scheduler at {client.scheduler.address if client.scheduler else 'its address'} is gone: {done} of "
            f"{total} results are in {records.folder}, and the same command goes on from there"
        ) from None
    except HostError as error:
        raise HostError(f"{error}; {done} of {total} results are in {records.folder}, and the same command goes on "
                        "from there") from None  # fmt: skip


def _work(digest, function, *arguments):
    """Runs in a worker: the record of an item, with the seconds that it took."""
    from distributed import get_worker

    if sources_digest() != digest:
        raise HostError(f"the worker at {get_worker().address} has other sources of Tilewright")
    os.environ.setdefault(_JOBS, str(get_worker().state.nthreads))
    begin = time.monotonic()
    record = function(*arguments)
    return record | {"seconds": round(time.monotonic() - begin, 3)}


class Records:
    """Results in a folder, each in a file that is there whole or not at all.

    Parameters
    ----------
    folder : Path
    """

    def __init__(self, folder):
        self.folder = Path(folder)

    def read(self, key):
        """The record of an item, or None."""
        try:
            return json.loads((self.folder / f"{key}.json").read_text())
        except FileNotFoundError:
            return None

    def write(self, key, record):
        """Keeps a record; HostError if nothing can be written."""
        try:
            write_atomically(self.folder / f"{key}.json", json.dumps(record))
        except OSError as error:
            raise HostError(f"{error.filename}: {error.strerror}") from None


def key_of(*parts):
    """A word for an item and the sources, from the ``repr`` of what it depends on."""
    return hashlib.sha256(repr((sources_digest(), *parts)).encode()).hexdigest()[:24]


@cache
def sources_digest():
    """A word that is another one when a source of the package is."""
    digest = hashlib.sha256()
    for room in _ROOMS:
        (folder,) = find_spec(f"tilewright.{room}").submodule_search_locations
        for path in sorted(Path(folder).rglob("*.py")):
            digest.update(path.relative_to(folder).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()[:24]
