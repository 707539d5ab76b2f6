"""Campaigns: chunks, seeds, failures that are kept, coverage that is merged, bounds; no worker is started."""

from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from tilewright.errors import HostError
from tilewright.sim.hdl.simulation import SimulationError
from tilewright.tools.campaign import run as command
from tilewright.tools.campaign.kinds import KINDS, Kind, Tried
from tilewright.tools.campaign.run import Chunk, bound, run_chunk
from tilewright.tools.cli.campaign import NAMES
from tilewright.tools.cli.main import main
from tilewright.verify.coverage.table import Coverage


def even(preset, seed, count, coverage):
    """Cases that fail if a seed divides by five; each hits the bin of its seed."""
    for number in range(count):
        coverage.sample({"rest": {seed % 4}})
        wrong = seed % 5 == 0 and number == 2
        yield Tried(1, 'differs\n{"version": 1}' if wrong else "", b"model" if wrong else b"")


@pytest.fixture(autouse=True)
def one_kind(monkeypatch):
    kind = Kind("cases", 4, even, lambda preset: Coverage({"rest": range(4)}, [("rest",)]), "even-{preset}")
    monkeypatch.setitem(KINDS, "loads", kind)


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Runs a campaign without Dask; returns status, records, and what has been left as results."""
    results = {}

    def worked(client, submit, chunks, records, stage):
        for chunk in chunks:
            record = records.read(chunk.key) or run_chunk(chunk) | {"seconds": 1.0}
            records.write(chunk.key, record)
            yield chunk, record

    @contextmanager
    def connected(scheduler, workers):
        yield SimpleNamespace(nthreads=lambda: {"a": 1, "b": 1})

    monkeypatch.setattr(command, "worked", worked)
    monkeypatch.setattr(command, "connected", connected)
    monkeypatch.setattr(command, "record", lambda name, **figures: results.update({name: figures}))

    def run(*options):
        return main(["campaign", "--kind", "loads", "--out", str(tmp_path), *options]), results

    return run


def test_the_command_knows_every_kind():
    assert tuple(KINDS) == NAMES


def test_all_cases_run_and_failures_are_kept(run, tmp_path, capsys):
    status, results = run("--cases", "30", "--seed", "7")
    seeds = [Chunk("loads", "unit", 7, number, 4).own_seed for number in range(8)]
    bad = [number for number, seed in enumerate(seeds) if seed % 5 == 0 and number < 7]
    cases = 30 - len(bad)  # a chunk ends with its first failure
    assert status == bool(bad) and bad, "choose another seed"
    assert results["campaign-loads-unit-7"] == {
        "command": "tilewright campaign", "kind": "loads", "preset": "unit", "cases": cases, "mismatches": len(bad),
        "seed": 7, "chunks": 8,
    }  # fmt: skip
    stem = f"loads-unit-7-{bad[0]}"
    assert (tmp_path / "failures" / f"{stem}.json").read_text() == '{"version": 1}'
    assert (tmp_path / "failures" / f"{stem}.onnx").read_bytes() == b"model"
    assert f"seed {seeds[bad[0]]}\ndiffers\n" in (tmp_path / "failures" / f"{stem}.txt").read_text()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "loads on preset unit, seed 7"
    assert f"loads: differs; {tmp_path}/failures/{stem}.txt" in lines
    assert f"loads on unit: {cases} cases, {len(bad)} failures" in lines
    hit = {seed % 4 for seed in seeds}
    assert results["campaign-coverage-even-unit"]["empty"] == [f"rest {rest}" for rest in range(4) if rest not in hit]


def test_a_chunk_that_kills_its_workers_is_a_failure(run, monkeypatch, tmp_path, capsys):
    record = {"failure": "4 workers died of it", "seconds": 0.0}
    monkeypatch.setattr(command, "worked", lambda client, submit, chunks, *_: [(chunk, record) for chunk in chunks])
    status, results = run("--cases", "4")
    assert status == 1 and results == {}
    assert "4 workers died of it" in (tmp_path / "failures/loads-unit-1-0.txt").read_text()
    assert "loads on unit: 0 cases, 1 failures" in capsys.readouterr().out.splitlines()


def test_what_is_known_is_not_run_again(run, monkeypatch, capsys):
    run("--cases", "12", "--seed", "1")
    monkeypatch.setattr(command, "run_chunk", None)
    run("--cases", "12", "--seed", "1")
    assert "3 chunks, 3 of them known; " in capsys.readouterr().out


def test_campaigns_of_two_seeds_leave_two_results(run):
    run("--cases", "12", "--seed", "1")
    _, results = run("--cases", "12", "--seed", "2")
    assert {"campaign-loads-unit-1", "campaign-loads-unit-2"} <= set(results)


def test_hours_end(run, monkeypatch, capsys):
    seconds = iter(range(0, 100_000, 1000))
    monkeypatch.setattr(command.time, "monotonic", lambda: next(seconds))
    run("--hours", "1")
    # A round is four chunks for each of two workers; the time is over when it has ended.
    assert "\n8 chunks, 0 of them known; " in capsys.readouterr().out


def test_a_simulation_that_ends_is_a_failure(monkeypatch):
    def hangs(preset, seed, count, coverage):
        yield Tried(3)
        raise SimulationError("the run is not complete after 400,000 cycles")

    monkeypatch.setitem(KINDS, "loads", Kind("cases", 4, hangs))
    record = run_chunk(Chunk("loads", "unit", 1, 0, 4))
    sentence = "after 3 cases: the run is not complete after 400,000 cycles"
    assert record == {"cases": 3, "failure": sentence, "model": ""}

    def full(preset, seed, count, coverage):
        raise HostError("No space left on device")
        yield

    monkeypatch.setitem(KINDS, "loads", Kind("cases", 4, full))
    with pytest.raises(HostError, match=r"^No space left on device$"):
        run_chunk(Chunk("loads", "unit", 1, 0, 4))


def test_the_rule_of_three():
    assert bound(300_000, 0) == "; with 95 % confidence fewer than one case in 100,000 fails (3 / 300,000)"
    assert bound(300_000, 1) == bound(0, 0) == ""


@pytest.mark.parametrize("options", [[], ["--cases", "1", "--hours", "1"]])
def test_either_cases_or_hours(options, capsys):
    assert main(["campaign", *options]) == 2
    assert capsys.readouterr().err == "tilewright campaign: either --cases or --hours must be given\n"
