"""Where an ECP5 has room for what: tiles of logic, block memories, multipliers."""

from dataclasses import dataclass

import numpy as np

__all__ = ["DEVICES", "PER_TILE", "Device"]

#: Tables, and flip-flops, in a tile of logic.
PER_TILE = 8
_FIRST = 2  # column and row of the first tile with logic
_PERIOD = 9  # columns from one group of sites to the next, in either half
#: Of each site of a group: its column in the group, and its name.
_MEMORIES = ((0, "EBR0"), (2, "EBR1"), (4, "EBR2"), (6, "EBR3"))
_MULTIPLIERS = ((0, "MULT18_0"), (1, "MULT18_1"), (4, "MULT18_4"), (5, "MULT18_5"))


@dataclass(frozen=True)
class Device:
    """A die, as nextpnr counts its columns and rows, from 0.

    Attributes
    ----------
    columns, rows : int
        The last ones with logic.
    memories, multipliers : tuple of int
        Rows of block memories and of multipliers; there is no logic in them.
    groups : tuple of int
        First columns of the groups of sites in such a row.
    """

    columns: int
    rows: int
    memories: tuple
    multipliers: tuple
    groups: tuple

    def capacity(self):
        """Tables that each tile has room for, an array of rows and columns, one more of each than the last one."""
        room = np.zeros((self.rows + 2, self.columns + 2))
        room[_FIRST:-1, _FIRST:-1] = PER_TILE
        room[list(self.memories + self.multipliers)] = 0
        return room

    def sites(self, kind):
        """Sites of ``DP16KD`` or of ``MULT18X18D``: their columns and rows, (2, n), and nextpnr's names."""
        rows, group = (self.memories, _MEMORIES) if kind == "DP16KD" else (self.multipliers, _MULTIPLIERS)
        found = [(first + x, y, name) for y in rows for first in self.groups for x, name in group]
        return np.array([site[:2] for site in found], float).T, [f"X{x}/Y{y}/{name}" for x, y, name in found]


def _groups(left, right, start):
    """First columns of the groups in the left half, and in the right one from ``start`` on."""
    return tuple(4 + _PERIOD * i for i in range(left)) + tuple(start + _PERIOD * i for i in range(right))


_SMALL = Device(70, 48, (25, 37), (13,), _groups(3, 4, 33))
#: By nextpnr's names; the smallest one is a 25k with less of it sold.
DEVICES = {
    "12k": _SMALL,
    "25k": _SMALL,
    "45k": Device(88, 69, (10, 34, 58), (22, 46), _groups(4, 5, 42)),
    "85k": Device(124, 93, (22, 46, 70, 82), (10, 34, 58), _groups(7, 6, 69)),
}
