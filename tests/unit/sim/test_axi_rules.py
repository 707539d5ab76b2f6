"""The list of AXI rules: whose each is, and the table of where they were shown to be kept."""

from tilewright.sim.axi_rules import Party, Rule, Wait, record_rules, rules_table


def test_parties():
    """Requests are the manager's and beats the subordinate's, without a rule that is nobody's or both's."""
    assert [rule for rule in Rule if rule.name.startswith("AR")] == Rule.decode(Rule.mask(Party.MANAGER))
    assert Rule.mask(Party.MANAGER) ^ Rule.mask(Party.SUBORDINATE) == (1 << len(Rule)) - 1
    assert Wait.decode(Wait.mask(Party.MANAGER)) == [Wait.RREADY]


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
