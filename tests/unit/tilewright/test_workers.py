"""Work on Dask: records are kept, workers and schedulers that die lose none, and there is one sentence."""

import os
import signal
from pathlib import Path

import pytest

from support.cluster_processes import dask_processes, wait_until
from support.slow_items import Item, take_time
from tilewright import workers
from tilewright.errors import HostError, UsageError
from tilewright.workers import Records, connected, key_of, worked

SUPPORT = str(Path(__file__).parents[2])


def done(client, items, records):
    return {item.number: record for item, record in
            worked(client, lambda run, item: run(take_time, item), items, records, "items")}  # fmt: skip


def squares(records):
    return {number: record["square"] for number, record in records.items()}


def test_a_scheduler_by_address_and_what_may_happen_to_it(tmp_path, monkeypatch):
    """Two worker processes: one is killed in its work, then the scheduler; each time nothing is lost."""
    monkeypatch.setenv("DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT", "2s")
    items, records = [Item(number, 0.3) for number in range(8)], Records(tmp_path / "records")
    environment = {"PYTHONPATH": SUPPORT, "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1"}
    with dask_processes(tmp_path, **environment) as processes:
        with connected(processes.address) as client:
            client.wait_for_workers(2)
            working = worked(client, lambda run, item: run(take_time, item), items, records, "items")
            next(working)
            processes.kill(processes.workers[0])
            assert {item.number for item, _ in working} <= set(range(8))
            assert squares(done(client, items, records)) == {number: number**2 for number in range(8)}

            # What is known is not done again; what kills every worker is said, and tried again the next time.
            more = [*items, Item(8, 60)]
            working = worked(client, lambda run, item: run(take_time, item), more, records, "items")
            for _ in items:
                next(working)
            processes.add_worker()
            client.wait_for_workers(2)
            numbers = client.run(os.getpid)
            for _ in numbers:
                busy = wait_until(lambda: [address for address, keys in client.processing().items() if keys])[0]
                os.kill(numbers[busy], signal.SIGKILL)
                wait_until(lambda busy=busy: busy not in client.processing())
            assert [record["failure"] for _, record in working] == ["2 workers died of it"]
            assert records.read(Item(8).key) is None

            processes.add_worker()
            client.wait_for_workers(1)
            working = worked(client, lambda run, item: run(take_time, item), [*items, Item(9, 60)], records, "items")
            for _ in items:
                next(working)
            processes.kill(processes.scheduler)
            gone = rf"^the scheduler at .* is gone: 8 of 9 results are in {records.folder}, and the same command goes"
            with pytest.raises(HostError, match=gone):
                next(working)
    with pytest.raises(UsageError, match=r"^no scheduler answers at tcp://127\.0\.0\.1:"):
        with connected(processes.address):
            pass


def test_processes_of_this_machine(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", SUPPORT)
    records = Records(tmp_path)
    with connected(workers=1) as client:
        assert squares(done(client, [Item(3), Item(4)], records)) == {3: 9, 4: 16}
        sentence = rf"^nothing can be built in build/sim: No space left on device; 2 of 3 results are in {tmp_path}"
        with pytest.raises(HostError, match=sentence):
            done(client, [Item(3), Item(4), Item(5, full=True)], records)
        with monkeypatch.context() as patch:
            patch.setattr(workers, "sources_digest", lambda: "others")
            with pytest.raises(HostError, match=r"^the worker at tcp://.* has other sources of Tilewright"):
                done(client, [Item(3)], records)


def test_children_of_workers_end_with_them(tmp_path, monkeypatch):
    """Where the command is interrupted, no compiler goes on."""
    monkeypatch.setenv("PYTHONPATH", SUPPORT)
    number = tmp_path / "number"
    with connected(workers=1) as client:
        client.submit(take_time, Item(1, child=str(number)))
        group = int(wait_until(lambda: number.exists() and number.read_text()))
        os.killpg(group, 0)  # is there
    wait_until(lambda: not is_there(group))


def is_there(group):
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_who_works_is_chosen_once():
    with pytest.raises(UsageError, match=r"^--workers are processes on this machine: a scheduler has its own$"):
        with connected("tcp://127.0.0.1:1", 2):
            pass


def test_a_key_is_of_the_item_and_the_sources(monkeypatch):
    assert key_of("point", 1) == key_of("point", 1) != key_of("point", 2)
    before = key_of("point", 1)
    monkeypatch.setattr(workers, "sources_digest", lambda: "others")
    assert key_of("point", 1) != before


def test_records_that_cannot_be_kept(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(HostError, match=r"/file/key.json: (Not a directory|File exists)$"):
        Records(tmp_path / "file").write("key", {})
