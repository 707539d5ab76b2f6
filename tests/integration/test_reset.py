"""Reset in the middle of things: afterwards everything works as if nothing had been."""

import random
from dataclasses import replace
from itertools import islice

import pytest

from tilewright.sim.batches import TENSOR_BYTES, random_batches
from tilewright.sim.random_run import RandomRun, expected_words
from tilewright.sim.results import record
from tilewright.sim.session import Session
from tilewright.sim.stimulus import random_load

SEED = 5

#: Resets in each phase.
RESETS = {"unit": 40, "default": 10}


def victim(rng, params):
    """A load that is under way for long enough to be interrupted anywhere, as options of ``Session.command``."""
    smem = params.smem.size_bytes
    while True:
        tmap, coords, address = random_load(rng, gmem_bytes=TENSOR_BYTES, smem_bytes=smem, max_bytes=4096)
        if len(expected_words(tmap, coords, params.bus_bytes)) >= 24:
            return {"tmap": tmap, "coords": coords, "smem": address}


def phases(run):
    """First and last cycle of each phase of a complete run of one load that misses its descriptor."""
    trace, (load,) = run.trace, run.commands
    asked, came = trace.request_cycle[trace.request_id == 0], trace.beat_cycle[trace.beat_id == 0]
    return {
        "idle": (1, load.accepted),
        "descriptor fetch": (load.accepted + 1, int(asked[0]) - 1),
        "requests": (int(asked[0]), int(asked[-1])),
        "data in flight": (int(came[0]), int(came[-1])),
        "last writes": (int(came[-1]) + 1, load.done),
    }


@pytest.mark.parametrize("preset", RESETS)
def test_reset_at_any_moment(preset):
    """The AXI side is reset together with the unit; both then work, and the bus monitor has nothing to say."""
    rng = random.Random(SEED)
    print(f"{preset}: seed {SEED}, {RESETS[preset]} resets in each phase")
    resets = 0
    with Session(preset, latency=20, stall=0.3) as session:
        run = RandomRun(session)
        afterwards = list(islice(random_batches(SEED, session.params, 200), 8))
        for _ in range(RESETS[preset]):
            load = victim(rng, session.params)
            for phase, (first, last) in phases(interrupted(session, load, None)).items():
                cycle = rng.randint(first, last)
                assert not interrupted(session, load, cycle).finished
                session.run()  # resets; a line that is being written in the reset's first cycle still is
                batch = rng.choice(afterwards)
                differences = run.play(replace(batch, base=0, fresh=False, loads=tuple(rng.sample(batch.loads, 5))))
                assert not differences, f"after a reset in cycle {cycle}, {phase}: {differences}"
                resets += 1
    record(f"reset-{preset}", cases=resets, mismatches=0, seed=SEED)


def interrupted(session, load, limit):
    """The run of a load from a reset on, which leaves the hardware as it is after ``limit`` cycles."""
    session.clear()
    session.configure(latency=20, stall=0.3, issue_stall=0.8, answer_stall=0.0, seed=SEED)
    return session.run([session.command(**load)], limit=limit, trace=True)
