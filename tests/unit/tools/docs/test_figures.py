"""The figures of pages, compared with their home and with what was measured."""

import json
from pathlib import Path

import pytest

from tilewright import results
from tilewright.results import record
from tilewright.tools.cli.main import main
from tilewright.tools.docs import figures
from tilewright.tools.docs.figures import HOME, disagreements, stale

PAGE = "It takes 7<!-- figure: sum.cycles --> cycles, 3 to 4<!-- figure: sum.cycles[*] --> each.\n"


@pytest.fixture(autouse=True)
def checkout(tmp_path, monkeypatch):
    """A folder with two pages and an empty home."""
    monkeypatch.chdir(tmp_path)
    for module in (results, figures):
        monkeypatch.setattr(module, "FOLDER", Path("build/results"))
    Path("docs").mkdir()
    Path("README.md").write_text(PAGE)
    Path("docs/performance.md").write_text("As said, 7<!-- figure: sum.cycles -->.\n")
    HOME.write_text("{}\n")
    return tmp_path


def measure(total, *parts):
    record("sum", command="make sum", cycles=total, rows={f"part {n}": {"cycles": c} for n, c in enumerate(parts)})


def test_pages_and_home_are_brought_up_to_date(checkout, capsys):
    measure(12_345, 40, 60)
    assert main(["figures"]) == 0
    assert Path("README.md").read_text() == PAGE.replace(" 7<", " 12,345<").replace("3 to 4", "40 to 60")
    assert Path("docs/performance.md").read_text() == "As said, 12,345<!-- figure: sum.cycles -->.\n"
    (entry,) = json.loads(HOME.read_text()).values()
    assert entry["figures"] == {"cycles": [12345], "cycles[*]": [40, 60]}
    assert entry["commit"] and entry["date"] and entry["command"].startswith("pytest ")
    assert "README.md:1: 7, but sum.cycles is 12,345" in capsys.readouterr().out
    assert disagreements(checkout) == stale("sum", checkout) == []


def test_check_writes_nothing(checkout, capsys):
    measure(7, 3, 4)
    assert main(["figures"]) == 0
    assert main(["figures", "--check"]) == 0
    measure(8, 3, 4)
    assert main(["figures", "--check"]) == 1
    printed = capsys.readouterr().out
    assert "sum.cycles: [7] in docs/figures.json, now [8]" in printed
    assert "docs/performance.md:1: 7, but sum.cycles is 8" in printed
    assert Path("README.md").read_text() == PAGE
    assert stale("sum", checkout) == [
        "sum.cycles: [8] was measured, docs/figures.json has [7]: run `tilewright figures`"
    ]


def test_a_page_that_is_not_its_home(checkout):
    measure(7, 3, 4)
    main(["figures"])
    Path("docs/performance.md").write_text("As said, 70<!-- figure: sum.cycles -->.\n")
    assert disagreements(checkout) == ["docs/performance.md:1: 70, but sum.cycles is 7"]


def test_figures_without_a_result_stay(checkout):
    measure(7, 3, 4)
    main(["figures"])
    before = HOME.read_text()
    (Path("build/results/sum.json")).unlink()
    assert main(["figures"]) == 0
    assert HOME.read_text() == before


def test_a_figure_that_was_never_measured(checkout):
    assert main(["figures"]) == 1
    assert "README.md:1: docs/figures.json has no figure sum.cycles" in disagreements(checkout)
    assert HOME.read_text() == "{}\n"


def test_nothing_to_compare_with(checkout):
    measure(7, 3, 4)
    assert stale("sum", checkout) == [
        "docs/figures.json has no figure of sum: cite it on a page and run `tilewright figures`"
    ]


def test_a_figure_that_no_page_cites_leaves_the_home(checkout):
    measure(7, 3, 4)
    main(["figures"])
    Path("README.md").write_text("Nothing.\n")
    assert disagreements(checkout) == ["docs/figures.json: no page cites sum.cycles[*]"]
    main(["figures"])
    assert disagreements(checkout) == []


@pytest.mark.parametrize("copy", ["563,497", "563497"])
def test_a_copy_without_a_citation_is_found(checkout, copy):
    measure(563_497, 3, 4)
    main(["figures"])
    Path("docs/limits.md").write_text(f"Some 1,{copy} and 563,4970.\nIt takes {copy}.\n")
    assert disagreements(checkout) == [f"docs/limits.md:2: {copy} is sum.cycles, and does not cite it"]


def test_outside_of_a_checkout(tmp_path, monkeypatch, capsys):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert main(["figures"]) == 2
    assert "there is no docs/figures.json: run it in the root of the repository" in capsys.readouterr().err
