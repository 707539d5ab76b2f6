"""Broadcaster: every column that is on exactly once, in steps as full as they can be; latency and rate."""

import random

import pytest

from support.streams import transact
from tilewright.hw.pe.broadcast import Broadcaster, place_of_unit
from tilewright.hw.pe.layouts import SHARINGS, SPLIT_COLUMNS, is_split
from tilewright.hw.pe.params import LANES, PE_PRESETS
from tilewright.verify.pysim.simulate import elaborated
from tilewright.verify.pysim.streams import STALL_MODES

SEED = 5
UNIT = PE_PRESETS["unit"].replace(regs=64)


def random_mm(rng, ka, kb, columns=24, density=0.6, split=0.3):
    """An mm and its items; some come twice, with one part of the columns each. The unit's number tells it."""
    sizes = [SPLIT_COLUMNS, ka - SPLIT_COLUMNS] if is_split(ka, kb) else [LANES // kb // ka * ka]
    register, items, first = rng.randrange(UNIT.regs // 2 - 8), [], 0
    while first < columns:
        size = sizes[0 if first % ka == 0 else 1]
        on = sum((rng.random() < density) << column for column in range(min(size, columns - first)))
        before = (1 << rng.randrange(1, LANES)) - 1 if rng.random() < split else 0
        for there in (on & before, on & ~before):
            if there:
                units = [kb * first + lane for lane in range(LANES)]
                item = {"units": units, "on": there, "register": register + first // ka, "first_member": first % ka}
                items.append(item | {"last": 0})
        first += size
    if not items or rng.random() < 0.5:
        items.append({"units": [0] * LANES, "on": 0, "register": 0, "first_member": 0})
    items[-1]["last"] = 1
    return {"type": rng.randrange(10), "ka": ka - 1, "kb": kb - 1}, items


def steps_of(mm, items):
    """(register, {member: its units}) of every step: columns of one register that follow each other."""
    steps, ka, kb = [], mm["ka"] + 1, mm["kb"] + 1
    for item in items:
        for column in range(LANES):
            if item["on"] >> column & 1:
                place, member = divmod(item["first_member"] + column, ka)
                if not steps or steps[-1][0] != item["register"] + place:
                    steps.append((item["register"] + place, {}))
                assert member not in steps[-1][1]
                steps[-1][1][member] = item["units"][kb * column : kb * (column + 1)]
    return steps or [(None, {})]


def run(work, mode="none"):
    """Steps, and the cycles in which they came."""
    items = {"multiplies": [mm for mm, _ in work], "columns": [item for _, items in work for item in items]}
    count = sum(len(steps_of(*pair)) for pair in work)
    payloads, cycles = transact(elaborated(Broadcaster, UNIT), items, {"steps": count}, mode)
    return payloads["steps"], cycles["steps"]


def full_mm(rng, ka, kb, density=1):
    """An mm without items in which nothing is on."""
    mm, items = random_mm(rng, ka, kb, density=density, split=0)
    items = [item for item in items if item["on"]]
    return mm, [*items[:-1], items[-1] | {"last": 1}]


@pytest.mark.parametrize("mode", STALL_MODES)
def test_every_sharing(mode):
    rng = random.Random(SEED)
    work = [random_mm(rng, ka, kb, density=rng.choice([0.1, 0.6, 1])) for ka, kb in rng.sample(SHARINGS * 2, 32)]
    steps = iter(run(work, mode)[0])
    for mm, items in work:
        expected = steps_of(mm, items)
        for index, (register, members) in enumerate(expected):
            step = next(steps)
            assert {name: step[name] for name in mm} == mm
            assert (step.first, step.last) == (index == 0, index == len(expected) - 1)
            assert step.on == sum(1 << member for member in members)
            assert not members or step.register == register
            ka, kb = step.ka + 1, step.kb + 1
            for member, units in members.items():
                assert [step.units[place_of_unit(ka, kb, kb * member + qb)] for qb in range(kb)] == units


@pytest.mark.parametrize(("ka", "kb"), [(1, 1), (2, 1), (1, 2), (2, 2), (1, 4), (4, 2)])
def test_one_step_a_cycle(ka, kb):
    """Also where columns are off, and between instructions."""
    rng = random.Random(SEED)
    steps, cycles = run([full_mm(rng, ka, kb, density) for density in (1, 1, 0.8, 1)])
    assert cycles == [*range(6, 6 + len(steps))]


@pytest.mark.parametrize(("ka", "kb", "cycles"), [(3, 3, 16 * 2), (4, 3, 12 * 2), (4, 4, 12 * 2)])
def test_steps_of_several_items(ka, kb, cycles):
    """An item a cycle where two make a step."""
    rng = random.Random(SEED)
    _, step_cycles = run([full_mm(rng, ka, kb) for _ in range(2)])
    assert step_cycles[-1] == 5 + cycles


def test_a_lone_item_takes_six_cycles():
    mm, items = random_mm(random.Random(SEED), 1, 1, columns=1, density=1, split=0)
    _, cycles = run([(mm, [items[0] | {"last": 1}])])
    assert cycles == [6]
