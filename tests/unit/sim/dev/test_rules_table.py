"""The table of where the rules of AXI were shown to be kept."""

from tilewright.sim.dev.rules_table import record_rules, rules_table
from tilewright.sim.harness.axi_rules import Rule


def test_table(tmp_path, monkeypatch):
    """Every rule has a row, which names the suites that showed it."""
    monkeypatch.setattr("tilewright.sim.results.FOLDER", tmp_path)
    record_rules("proved", "port", [Rule.AR_PAGE])
    record_rules("simulated", "one")
    record_rules("simulated", "two")
    rows = rules_table().splitlines()[2:]
    assert len(rows) == len(Rule)
    assert rows[Rule.AR_PAGE.bit].endswith("| port | one, two |")
    assert rows[Rule.R_LAST.bit].startswith("| `R_LAST` | subordinate |")
    assert rows[Rule.R_LAST.bit].endswith("| – | one, two |")
