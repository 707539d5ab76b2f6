"""The list of AXI rules: whose each is."""

from tilewright.sim.harness.axi_rules import READ, WRITE, Party, Rule, Wait


def test_parties():
    """Each rule has one side; requests and written data are the manager's."""
    assert Rule.mask(Party.MANAGER) ^ Rule.mask(Party.SUBORDINATE) == (1 << len(Rule)) - 1
    assert {rule.channel for rule in Rule.select(Party.MANAGER)} == {"AR", "AW", "W"}
    assert {rule.channel for rule in Rule.select(Party.SUBORDINATE)} == {"R", "B"}
    assert Wait.select(Party.MANAGER) == [Wait.RREADY, Wait.AWVALID, Wait.WVALID, Wait.BREADY]


def test_directions():
    """Members that say the same of different channels are different members."""
    assert Rule.AR_CHANGED is not Rule.AW_CHANGED
    assert Rule.mask(Party.MANAGER, READ) ^ Rule.mask(Party.MANAGER, WRITE) == Rule.mask(Party.MANAGER)
    assert Rule.decode(Rule.mask(Party.SUBORDINATE, WRITE)) == Rule.select(Party.SUBORDINATE, ("B",))
    assert Wait.ARREADY.channel == "AR"
    assert Wait.BREADY.channel == "B"
