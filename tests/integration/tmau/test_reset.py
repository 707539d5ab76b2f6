"""Reset in the middle of things: each byte is as before or as after, and the next commands work.

The AXI side is reset together with the unit. The bus monitor has nothing to say before or behind the reset.
"""

import pytest

from tilewright.golden.spec import Element, Reduction
from tilewright.sim.compare.scoreboard import Scoreboard
from tilewright.sim.results import record
from tilewright.sim.session.tmau import TmauSession

ADDED = {"reduction": Reduction.ADD, "element": Element.U32}
COMMANDS = (
    ("load", {}),
    ("im2col load", {}),
    ("store", {}),
    ("reduce", {}),
    ("copy GG", {}),
    ("copy GS", {}),
    ("copy SG", {}),
    ("copy SS", {}),
    ("copy GG", ADDED),
    ("copy SS", ADDED),
    ("to lanes", {}),
    ("from lanes", {}),
    ("replace", {}),
)


@pytest.mark.parametrize(
    ("preset", "step"),
    [
        ("unit", 5),
        *(pytest.param(*case, marks=pytest.mark.long) for case in (("unit", 1), ("default", 6))),
    ],
)
def test_reset_in_every_cycle(preset, step):
    """From the first cycle of a command to its last; or in every so many cycles, which are others for each command."""
    resets = 0
    with TmauSession(preset, latency=4, stall=0.2, patience=100_000) as session:
        scoreboard = Scoreboard(session)
        for kind, changes in COMMANDS:
            scoreboard.begin()
            command = scoreboard.command(kind, **changes)
            life = session.run([command]).cycles
            for cycle in range(1 + resets % step, life, step):
                scoreboard.begin()
                assert scoreboard.interrupt(command, cycle) == 0, f"{kind}, cycle {cycle} of {life}"
                assert scoreboard.works() == [], f"{kind}, cycle {cycle} of {life}"
                resets += 1
    print(f"{preset}: {resets} resets")
    record(f"reset-{preset}", cases=resets, mismatches=0)
