"""The command: which files it changes, how a chunk is known again, and what it prints."""

from contextlib import contextmanager

import pytest

from tilewright.errors import UsageError
from tilewright.tools.cli.main import main
from tilewright.tools.mutation import run
from tilewright.tools.mutation.mutants import mutants_of
from tilewright.tools.mutation.run import Chunk, files, judge_chunk


def test_files_of_blocks():
    assert files(["tmau/walk"]) == [f"tmau/walk/{name}.py" for name in ("address", "pixel", "requests", "tile")]
    assert files(["lib/logic.py"]) == ["lib/logic.py"]
    assert not {"pe/params.py", "pe/layouts.py", "pe/__init__.py"} & set(files())
    with pytest.raises(UsageError, match=r"^there is no folder or file tmau/params\.py with hardware in hw/$"):
        files(["tmau/params.py"])


def test_a_chunk_depends_on_what_its_tests_need(monkeypatch):
    mutants = tuple(mutants_of("tmau/walk/requests.py")[:2])
    keys = {Chunk(mutants, ("tests",)).key, Chunk(mutants[:1], ("tests",)).key, Chunk(mutants, ("proofs",)).key}
    monkeypatch.setattr(run, "closure", lambda path: {path})
    assert len(keys | {Chunk(mutants, ("tests",)).key}) == 4


def test_verdicts():
    """One that a test notices, and one that only a proof notices."""
    found = {(one.line, one.change): one for one in mutants_of("tmau/walk/requests.py")}
    changes = {
        (46, "without self.stores.valid.eq(valid & run.store)"): ("killed", "tests"),
        (164, "without m.d.sync += previous_valid.eq(0)"): ("killed", "proofs"),
    }
    record = judge_chunk(Chunk(tuple(found[change] for change in changes), ("tests", "proofs")))
    assert [(one["verdict"], one["judge"]) for one in record["mutants"]] == list(changes.values())
    assert all(one["by"] and one["reason"] for one in record["mutants"])


def test_the_command_counts_what_is_noticed(monkeypatch, capsys):
    results = {}

    @contextmanager
    def connected(scheduler, workers):
        yield None

    def worked(client, submit, chunks, records, stage):
        for chunk in chunks:
            verdicts = ["survived", *["killed"] * (len(chunk.mutants) - 1)]
            yield chunk, {"mutants": [{"verdict": verdict, "judge": "tests"} for verdict in verdicts]}

    monkeypatch.setattr(run, "connected", connected)
    monkeypatch.setattr(run, "worked", worked)
    monkeypatch.setattr(run, "record", lambda name, **figures: results.update({name: figures}))
    monkeypatch.setattr(run, "files", lambda blocks: ["tmau/walk/requests.py", "tmau/walk/tile.py", "lib/logic.py"])
    assert main(["mutate", "--count", "10"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:3] for line in lines[1:4]] == [
        ["lib", "10", "8"],
        ["tmau/walk", "20", "16"],
        ["all", "30", "24"],
    ]
    assert sum(line.endswith(": nobody has looked") for line in lines) == 6
    assert results["mutation-together"]["killed"] == 24
    assert main(["mutate", "--block", "lib/logic.py"]) == 0
    assert main(["mutate", "--judge", "tests"]) == 0
    assert list(results) == ["mutation-together"], "neither some blocks nor one judge replace its figures"
