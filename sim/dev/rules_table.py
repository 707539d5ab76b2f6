"""Which rules of AXI were proved, and which watched in simulation, by which suites."""

from ..harness.axi_rules import Rule
from ..results import load, record
from .tables import table

__all__ = ["record_rules", "rules_table"]


def record_rules(how, where, rules=Rule):
    """Leaves as a result that ``rules`` were ``how`` (``"proved"`` or ``"simulated"``) in the suite ``where``."""
    record(f"axi-rules-{how}-{where}", how=how, where=where, rules=[rule.name for rule in rules])


def rules_table():
    """The rules, who has to keep each, and where the last runs proved it or watched it: a table in Markdown."""
    results = load("axi-rules-*")

    def places(rule, how):
        found = (each["where"] for each in results if each["how"] == how and rule.name in each["rules"])
        return ", ".join(found) or "–"

    rows = [
        (f"`{rule.name}`", rule.party.name.lower(), rule.doc, places(rule, "proved"), places(rule, "simulated"))
        for rule in Rule
    ]
    return table(["rule", "kept by", "meaning", "proved", "simulated"], rows)
