"""The AXI4 read signature: names, widths, and parameters in one sentence."""

import pytest
from amaranth.lib.wiring import Out

from tilewright.hw.bus.axi4 import Axi4ReadSignature


def test_members():
    port = Axi4ReadSignature(48, 512, 2).create()
    widths = {"arid": 2, "araddr": 48, "arlen": 8, "arsize": 3, "arburst": 2, "arprot": 3, "arcache": 4, "arvalid": 1}
    widths |= {"arready": 1, "rid": 2, "rdata": 512, "rresp": 2, "rlast": 1, "rvalid": 1, "rready": 1}
    assert {name: member.shape for name, member in port.signature.members.items()}.keys() == widths.keys()
    for name, width in widths.items():
        signal = getattr(port, name)
        assert len(getattr(signal, "as_value", lambda signal=signal: signal)()) == width, name
    driven = {name for name, member in port.signature.members.items() if member.flow == Out}
    assert driven == {name for name in widths if name.startswith("ar")} - {"arready"} | {"rready"}


def test_equality_and_repr():
    assert Axi4ReadSignature(32, 128, 1) == Axi4ReadSignature(32, 128, 1)
    assert Axi4ReadSignature(32, 128, 1) != Axi4ReadSignature(32, 128, 2)
    assert repr(Axi4ReadSignature(32, 128, 1)) == "Axi4ReadSignature(32, 128, 1)"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((11, 128, 1), r"^addr_width must be an int from 12 to 64, not 11$"),
        ((32, 96, 1), r"^data_width must be 32, 64, 128, 256, 512 or 1024, not 96$"),
        ((32, 128, 0), r"^id_width must be an int of at least 1, not 0$"),
    ],
)
def test_refused_parameters(arguments, message):
    with pytest.raises(ValueError, match=message):
        Axi4ReadSignature(*arguments)
