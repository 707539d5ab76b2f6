"""The verification stage, judged from recorded figures."""

from pathlib import Path

import pytest

from tilewright import results
from tilewright.results import record
from tilewright.sim.harness.axi_channels import Rule
from tilewright.tools.cli.main import main
from tilewright.tools.docs import stages
from tilewright.tools.docs.stages import GOALS, record_rules, rules_table, stages_text


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # Not those of this test run, wherever TILEWRIGHT_BUILD says that they lie.
    for module in (results, stages):
        monkeypatch.setattr(module, "FOLDER", Path("build/results"))


def row(number):
    return next(line for line in stages_text().splitlines() if line.startswith(f"| {number} |"))


def test_goals_are_those_of_the_ladder():
    assert [goal.number for goal in GOALS] == list(range(1, 18))  # 18 is the ledger


def test_without_figures_nothing_is_met():
    text = stages_text()
    assert "**met**" not in text
    assert "**Stage V1: 0 of 14 goals met.**" in text
    assert "not measured | open" in row(1)


def test_cases_of_all_suites_add_up():
    record("random-verilator", cases=900, mismatches=0)
    assert "900 cases, 0 mismatches | open" in row(1)
    record("random-icarus", cases=100, mismatches=0)
    assert "1,000 cases, 0 mismatches | **met** | open" in row(1)
    assert "**Stage V1: 1 of 14 goals met.**" in stages_text()
    assert "**Stage V2: 0 of 18 goals met.**" in stages_text()
    record("campaign-loads-unit-1", cases=4000, mismatches=0, chunks=4)
    record("campaign-loads-unit-2", cases=5000, mismatches=0, chunks=5)
    assert "10,000 cases, 0 mismatches, so fewer than 1 in 3,333 fails | **met** | **met**" in row(1)
    assert "9,000 cases, 0 mismatches | – | open" in row(2)
    assert "9 of 9 seeds | – | **met**" in row(15)


def test_one_mismatch_is_too_much():
    record("random-verilator", cases=5000, mismatches=1)
    assert "5,000 cases, 1 mismatches | open" in row(1)


def test_only_unbounded_proofs_count():
    record("proof-f1-queue", property="F1", mode="prove")
    record("proof-f3-read-port", property="F3", mode="prove")
    record("proof-f4-burst", property="F4", mode="bmc")
    assert "F1, F3 in 3 proofs | open" in row(5)
    record("proof-f4-burst", property="F4", mode="prove")
    assert "F1, F3, F4 in 3 proofs | **met**" in row(5)


def test_every_preset_must_be_simulated():
    for preset in ("unit", "ecp5", "default", "lean"):
        record(f"preset-{preset}", preset=preset, simulated=True)
    record("preset-full", preset="full", simulated=False)
    assert "| open |" in row(16)
    record("preset-full", preset="full", simulated=True)
    assert "| **met** |" in row(16)


def test_coverage_counts_bins():
    record("coverage-random", bins=30, empty=["rank 5 x gather0"])
    assert "29 of 30 bins | **met** | **met**" in row(3)
    record("coverage-random", bins=30, empty=["a", "b", "c", "d"])
    assert "26 of 30 bins | **met** | open" in row(3)


def test_isolation_is_proved_or_not():
    record("isolation-unit", cases=4000, mismatches=0)
    assert "guard exists, not proved | **met** | open" in row(11)
    record("proof-f7-guard", property="F7", mode="prove")
    assert "guard exists, proved | **met** | **met**" in row(11)


def test_mutants_of_both_judges():
    rows = {"tmau": {"mutants": 1500, "killed": 1500}, "lib": {"mutants": 500, "killed": 400}}
    record("mutation-together", mutants=2000, killed=1900, rows=rows)
    assert "1,900 of 2,000 mutants killed | **met** | **met**" in row(6)
    record("mutation-together", mutants=1999, killed=1900, rows=rows)
    assert "1,900 of 1,999 mutants killed | **met** | open" in row(6), "too few"
    rows["lib"]["killed"] = 399
    record("mutation-together", mutants=2000, killed=1899, rows=rows)
    assert "1,899 of 2,000 mutants killed | **met** | open" in row(6), "a block below 80 %"
    record("mutation-properties", mutants=10, killed=7)
    assert "7 of 10 mutants killed | **met** | open" in row(7)


def test_ledger_has_rows(tmp_path):
    (tmp_path / "docs").mkdir()
    ledger = tmp_path / "docs/bugs.md"
    ledger.write_text("# Bugs\n\n| found by | what |\n| --- | --- |\n")
    assert "not measured" in row(18)
    ledger.write_text(ledger.read_text() + "| proof | a word too many |\n")
    assert "docs/bugs.md | **met**" in row(18)


def test_command_writes_the_page(tmp_path, capsys):
    record("random-verilator", cases=1000, mismatches=0)
    assert main(["stages", "--out", "page.md"]) == 0
    assert (tmp_path / "page.md").read_text() == stages_text()
    assert capsys.readouterr().out == "page.md\n"


def test_without_any_figures_the_page_stays(tmp_path, capsys):
    """A fresh clone has the page and no figures."""
    (tmp_path / "STAGES.md").write_text("good figures")
    assert main(["stages"]) == 2
    sentence = "there are no figures in build/results: `make test` and `make bench` leave them there"
    assert capsys.readouterr().err == f"tilewright stages: {sentence}\n"
    assert (tmp_path / "STAGES.md").read_text() == "good figures"


def test_rows_without_new_figures_stay(tmp_path, capsys):
    record("random-verilator", cases=1000, mismatches=0)
    record("coverage-random", bins=30, empty=[])
    assert main(["stages"]) == 0
    before = (tmp_path / "STAGES.md").read_text()
    (tmp_path / "build/results/coverage-random.json").unlink()
    record("random-verilator", cases=1000, mismatches=2)
    capsys.readouterr()
    assert main(["stages"]) == 0
    assert capsys.readouterr().out == "kept from before, for build/results has no figures of them: 3\nSTAGES.md\n"
    after = (tmp_path / "STAGES.md").read_text().splitlines()
    changed = [line for line in after if line not in before.splitlines()]
    assert [line[:4] for line in changed] == ["**St", "| 1 "]
    assert "1,000 cases, 2 mismatches | open" in changed[1]
    assert "**Stage V1: 1 of 14 goals met.**" in changed[0]


def test_a_row_of_another_target_does_not_stay(tmp_path):
    record("random-verilator", cases=1000, mismatches=0)
    assert main(["stages"]) == 0
    page = (tmp_path / "STAGES.md").read_text()
    (tmp_path / "build/results/random-verilator.json").unlink()
    assert "| 10,000 cases | 1,000 cases, 0 mismatches | **met** | open |" in stages_text(page)
    changed = stages_text(page.replace("| 10,000 cases |", "| 10 cases |"))
    assert "| 10,000 cases | not measured | open | open |" in changed


def test_table(tmp_path, monkeypatch):
    """Every rule has a row, which names the suites that showed it."""
    monkeypatch.setattr("tilewright.results.FOLDER", tmp_path)
    record_rules("proved", "port", [Rule.AR_PAGE])
    record_rules("simulated", "one")
    record_rules("simulated", "two")
    rows = rules_table().splitlines()[2:]
    assert len(rows) == len(Rule)
    assert rows[Rule.AR_PAGE.bit].endswith("| port | one, two |")
    assert rows[Rule.R_LAST.bit].startswith("| `R_LAST` | subordinate |")
    assert rows[Rule.R_LAST.bit].endswith("| – | one, two |")
