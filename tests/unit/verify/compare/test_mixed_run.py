"""What golden makes of a mixed batch."""

import json
from dataclasses import replace

import pytest

from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.sim.replay.cases import read_cases
from tilewright.sim.replay.golden import run_case
from tilewright.sim.session.events import CommandStamp
from tilewright.spec import DESCRIPTOR, Error, LaneLayout, Opcode, Space
from tilewright.verify.compare.mixed_run import BATCH_BYTES, batch_windows, order_case, order_differences, run_golden
from tilewright.verify.random.commands import Order
from tilewright.verify.random.mixed import GLOBAL_BYTES, PAGE, random_mixes

PARAMS = TMAU_PRESETS["unit"]
BATCH = next(random_mixes(1, PARAMS, 1))
COPY = {"opcode": Opcode.COPY_BLOCK, "source_space": Space.GLOBAL, "destination_space": Space.SHARED, "source": 0x2000,
        "destination": 0x200, "size": 64}  # fmt: skip


def test_memories_and_endings():
    base = 1 << 20
    orders = (Order(COPY, based=("source",)), Order({"opcode": 15}), Order(COPY | {"size": 8}, based=("source",)))
    golden = run_golden(replace(BATCH, base=base, orders=orders, windows=(False, False)), PARAMS)
    assert golden.endings == [Error.NONE, Error.OPCODE, Error.BLOCK_ALIGNMENT]
    assert golden.commands[0]["source"] == base + 0x2000
    assert len({command["tag"] for command in golden.commands}) == 3
    assert (golden.machine.smem[0x200:0x240] == golden.contents[0x2000:0x2040]).all()
    assert (golden.shared[0x200:0x240] != golden.contents[0x2000:0x2040]).any()
    assert len(golden.contents) == BATCH_BYTES


def test_a_descriptor_is_placed_once():
    load = next(order for order in BATCH.orders if order.fields["opcode"] == Opcode.LOAD and not order.skew)
    golden = run_golden(replace(BATCH, orders=(load, load)), PARAMS)
    assert [command["descriptor"] for command in golden.commands] == [BATCH.base + GLOBAL_BYTES] * 2
    place = slice(GLOBAL_BYTES, GLOBAL_BYTES + DESCRIPTOR.bytes)
    assert golden.contents[place].tobytes() == load.descriptor(BATCH.base)


def test_windows():
    batch = replace(BATCH, windows=(True, False))
    windows = batch_windows(batch, 4096, base=1 << 20)
    assert windows.global_ == ((1 << 20) + PAGE, (1 << 20) + BATCH_BYTES - 1)
    assert windows.shared is None
    assert batch_windows(replace(batch, windows=(False, True)), 4096, base=0).shared == (128, 4095)


LOAD, STORE = {"opcode": Opcode.LOAD}, {"opcode": Opcode.STORE}
COMMIT, ALL = {"opcode": Opcode.COMMIT}, {"opcode": Opcode.WAIT_ALL}
INWARD = {"opcode": Opcode.COPY_BLOCK, "size": 16, "destination_space": Space.SHARED}
WITHIN = {"opcode": Opcode.COPY_BLOCK, "size": 16, "destination_space": Space.GLOBAL}
LANES = {"opcode": Opcode.LANES, "destination_layout": LaneLayout.COMPACT}
REPLACE = {"opcode": Opcode.REPLACE}
LATE = "command 1 ended in cycle 8, before command 0"


def wait(count, *, read=0):
    return {"opcode": Opcode.WAIT, "count": count, "read": read}


def found(*ends):
    """What is found of pairs of a command and its end, which is a cycle, or a cycle and an error."""
    ends = [(command, *(end if isinstance(end, tuple) else (end, Error.NONE))) for command, end in ends]
    stamps = [CommandStamp(tag, 0, cycle, error) for tag, (_, cycle, error) in enumerate(ends)]
    return order_differences([command for command, _, _ in ends], stamps)


@pytest.mark.parametrize(
    ("ends", "sentence"),
    [
        ([(WITHIN, 46), (ALL, 7)], "command 1 ended in cycle 7, before command 0: WAIT_ALL ends last"),
        ([(LOAD, 9), (INWARD, 8)], f"{LATE}: transfers to shared memory end in order"),
        ([(STORE, 9), (WITHIN, 8)], f"{LATE}: transfers to global memory end in order"),
        (
            [(STORE, 9), (COMMIT, 2), (wait(0), 9)],
            "command 2 ended in cycle 9, before command 0: WAIT ends after the groups",
        ),
        (
            [(STORE, 5), (COMMIT, 2), (STORE, 9), (COMMIT, 3), (wait(1), 4)],
            "command 4 ended in cycle 4, before command 0: WAIT ends after the groups",
        ),
        (
            [(REPLACE, 20), (LOAD, 9)],
            "command 1 ended in cycle 9, before command 0: it waits for this one, or what that waits for",
        ),
        (
            [(LANES, 20), (REPLACE, 9), (wait(3), 12)],
            "command 2 ended in cycle 12, before command 0: it waits for this one, or what that waits for",
        ),
        (
            [(ALL, 20), ({"opcode": Opcode.LOAD}, (9, Error.COORDS))],
            "command 1 ended in cycle 9, before command 0: what is refused goes ahead of transfers only",
        ),
    ],
)
def test_out_of_order(ends, sentence):
    assert found(*ends) == [sentence]


@pytest.mark.parametrize(
    "ends",
    [
        [(LOAD, 9), (STORE, 8)],
        [(LOAD, 9), (STORE, (3, Error.COORDS)), (LOAD, 10)],
        [(STORE, 9), (COMMIT, 2), (wait(1), 3), (wait(0, read=1), 5)],
        [(LOAD, (8, Error.READ)), (LOAD, 9), (ALL, 10)],
        [(STORE, 9), (COMMIT, 2), (STORE, (3, Error.COORDS)), (COMMIT, 4), (wait(0), 10)],
        [(LOAD, 9), ({"opcode": Opcode.COPY_BLOCK, "size": 0, "destination_space": Space.SHARED}, 3)],
    ],
)
def test_what_is_left_open(ends):
    assert found(*ends) == []


SEED = 3


def batches():
    """Batches at address 0 that signal nothing."""
    for batch in random_mixes(SEED, PARAMS, 300):
        orders = (replace(order, fields=order.fields | {"signal": 0}) for order in batch.orders)
        yield replace(batch, base=0, orders=tuple(orders))


def test_a_case_does_what_the_batch_does(tmp_path):
    path, operations = tmp_path / "case.json", set()
    for batch in batches():
        sayable = [order for order in batch.orders if "no replay case" not in order_case("one", "", replace(
            batch, orders=(order,)), PARAMS)]  # fmt: skip
        batch = replace(batch, orders=tuple(sayable))
        path.write_text(order_case("whole", "found", batch, PARAMS))
        (case,) = read_cases(path)
        golden, outcome = run_golden(batch, PARAMS), run_case(case)
        expected = next((ending.name.lower() for ending in golden.endings if ending), None)
        assert outcome.record["error"] == expected
        assert (outcome.memories["smem"][:-128] == golden.machine.smem[:-128]).all()
        assert json.loads(path.read_text())["cases"][0]["expect"]["error"] == expected
        operations |= {command.opcode for command in case.commands}
    assert operations == set(Opcode)


@pytest.mark.parametrize("order", [Order({"opcode": 15}), Order({"opcode": Opcode.LOAD}, raw=bytes(128))])
def test_what_cannot_be_said(order):
    batch = replace(next(random_mixes(SEED, PARAMS, 1)), orders=(order,))
    assert order_case("none", "", batch, PARAMS).startswith("no replay case: no case can say")
