"""The table of an exploration, the answer to its question, and its pictures and page; nothing is simulated."""

import pytest
from pyarrow import csv, parquet

from tilewright.errors import UsageError
from tilewright.tools.explore import run as command
from tilewright.tools.explore.pictures import write_pictures
from tilewright.tools.explore.point import Area
from tilewright.tools.explore.space import Question, read_space
from tilewright.tools.explore.table import answer, rows_of, write_table

SPACE = """
preset = "unit"
set.tmau.max_outstanding = [4, 8]
latency = [10, 50]
workload = ["tile: 2-D, rows of 32 bytes", "tile: 2-D, rows of 64 bytes"]
area = true
least = "comb"
where = ["utilisation >= 50", "latency = 50"]
"""


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "space.toml"
    path.write_text(SPACE)
    return path


def made_up(path, wrong=False):
    """Rows with figures that follow from the points; with a point that failed."""
    space = read_space(path)
    areas = {point: Area(point.hardware.params) for point in space.points}
    records = {}
    for point in space.points:
        reads = point.hardware.params.tmau.max_outstanding
        cycles = 1000 * point.latency // reads
        records[point] = {"cycles": cycles, "limit": 1000, "utilisation": 100000 / cycles, "seconds": 1.0}
        records[areas[point]] = {"lut4": 10 * reads, "comb": 12 * reads, "levels": 9, "seconds": 2.0}
    if wrong:
        records[space.points[0]] = {"failure": "the results are wrong", "seconds": 0.5}
        records[areas[space.points[-1]]] = {"failure": "Yosys stopped", "seconds": 0.5}
    return space, rows_of(space, areas, records)


def test_rows_say_what_came_out_and_where_from(path, tmp_path):
    _, rows = made_up(path, wrong=True)
    assert [row["tmau.max_outstanding"] for row in rows] == [4] * 4 + [8] * 4
    assert rows[0] | {"failure": "the results are wrong", "cycles": None, "utilisation": None, "comb": 48} == rows[0]
    assert rows[-1]["failure"] == "Yosys stopped" and rows[-1]["comb"] is None and rows[-1]["cycles"] == 6250
    write_table(rows, tmp_path / "table")
    table = parquet.read_table(tmp_path / "table.parquet")
    assert table.to_pylist() == rows
    assert table.column_names[-7:] == ["seed", "version", "commit", "sources", "amaranth", "pyosys", "verilator"]
    again = csv.read_csv(tmp_path / "table.csv").to_pylist()
    assert [row["cycles"] for row in again] == [row["cycles"] for row in rows]


def test_the_answer_is_the_least_that_meets_all(path):
    space, rows = made_up(path)
    assert answer(space.question, rows) is None  # no utilisation of 50 % at that latency
    found = answer(Question("comb", (("utilisation", ">=", "10"), ("latency", "=", "50"))), rows)
    assert (found["comb"], found["latency"]) == (96, 50)
    found = answer(Question("cycles", (("comb", "<=", "48"),)), rows)
    assert (found["cycles"], found["tmau.max_outstanding"]) == (2500, 4)
    with pytest.raises(UsageError, match=r"^there is no column area, only preset, tmau\.max_outstanding, "):
        answer(Question("area", ()), rows)
    with pytest.raises(UsageError, match=r"^where: utilisation must be compared with a number, not 'much'$"):
        answer(Question("comb", (("utilisation", ">=", "much"),)), rows)


def test_pictures(path, tmp_path):
    _, rows = made_up(path, wrong=True)
    assert list(write_pictures(rows, tmp_path)) == ["maps", "bars"]  # one of the designs has no area
    _, rows = made_up(path)
    assert list(write_pictures(rows, tmp_path)) == ["pareto", "maps", "bars"]
    texts = {name: (tmp_path / f"{name}.svg").read_text() for name in ("pareto", "maps", "bars")}
    assert "latency 50" in texts["pareto"] and "2-D, rows of 32 bytes" in texts["maps"]
    assert "tmau.max_outstanding" in texts["bars"]
    write_pictures(rows, tmp_path / "again")
    assert texts == {name: (tmp_path / "again" / f"{name}.svg").read_text() for name in texts}
    assert write_pictures([row | {"cycles": None} for row in rows], tmp_path) == {}
    assert not (tmp_path / "maps.svg").exists()


@pytest.mark.parametrize("wrong", [False, True])
def test_the_command_leaves_everything_and_says_what_failed(path, tmp_path, capsys, monkeypatch, wrong):
    monkeypatch.setattr(command, "run_space", lambda space, *_: (made_up(path, wrong)[1], "9 s on 2 workers"))
    recorded = {}
    monkeypatch.setattr(command, "record", lambda name, **figures: recorded.update({name: figures}))
    monkeypatch.setattr(command, "SPACES", tmp_path)
    assert command.explore(path, tmp_path / "out") == int(wrong)
    lines = capsys.readouterr().out.splitlines()
    failed = "failed: unit, tmau.max_outstanding 4, latency 10, tile: 2-D, rows of 32 bytes: the results are wrong"
    assert lines[:1] == [failed] if wrong else ["8 points, 0 failed; 9 s on 2 workers"]
    assert lines[-3:] == ["least comb, utilisation >= 50, latency = 50: no point",
                          str(tmp_path / "out" / "space.parquet"), str(tmp_path / "out" / "index.html")]  # fmt: skip
    page = (tmp_path / "out" / "index.html").read_text()
    assert "maps.svg" in page and ("the results are wrong" in page) == wrong
    assert recorded["explore-space"]["points"] == 8
    name = "unit, tmau.max_outstanding 8, latency 50, tile: 2-D, rows of 64 bytes"
    assert recorded["explore-space"]["rows"][name]["cycles"] == 6250
