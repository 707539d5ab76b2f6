"""What an ECP5 has, against its data sheet, and where."""

import pytest

from tilewright.tools.fpga.places.device import DEVICES


@pytest.mark.parametrize(
    ("name", "tables", "memories", "multipliers"),
    [("25k", 24_288, 56, 28), ("45k", 43_848, 108, 72), ("85k", 83_640, 208, 156)],
)
def test_as_many_as_the_data_sheet_says(name, tables, memories, multipliers):
    device = DEVICES[name]
    room = device.capacity()
    assert room.sum() == tables
    for kind, count in (("DP16KD", memories), ("MULT18X18D", multipliers)):
        places, names = device.sites(kind)
        assert places.shape == (2, count)
        assert len(set(names)) == count
        columns, rows = places.astype(int)
        assert not room[rows, columns].any()


def test_names_are_those_of_nextpnr():
    places, names = DEVICES["85k"].sites("DP16KD")
    assert dict(zip(names, map(tuple, places.T), strict=True))["X120/Y82/EBR3"] == (120, 82)
    assert DEVICES["45k"].sites("MULT18X18D")[1][-1] == "X83/Y46/MULT18_5"
