"""Ends that are out of order are found; those that the specification leaves open are not."""

import pytest

from tilewright.golden.spec import Error, LaneLayout, Opcode, Space
from tilewright.sim.compare.order import order_differences
from tilewright.sim.session.run import CommandStamp

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
        (
            [(LOAD, 9), (INWARD, 8)],
            f"{LATE}: transfers to shared memory end in order",
        ),
        (
            [(STORE, 9), (WITHIN, 8)],
            f"{LATE}: transfers to global memory end in order",
        ),
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
