"""AXI4 signatures, and channels that share a port. The proof shows the read multiplexer (tests/formal/bus)."""

import pytest
from amaranth.hdl import Module
from amaranth.lib.wiring import Out

from tilewright.hw.bus.axi4 import Axi4ReadMux, Axi4ReadSignature, Axi4Signature, Axi4WriteSignature, forward_channels
from tilewright.verify.pysim.simulate import simulate

READ = {"arid": 2, "araddr": 48, "arlen": 8, "arsize": 3, "arburst": 2, "arprot": 3, "arcache": 4, "arvalid": 1}
READ |= {"arready": 1, "rid": 2, "rdata": 512, "rresp": 2, "rlast": 1, "rvalid": 1, "rready": 1}
WRITE = {"awid": 2, "awaddr": 48, "awlen": 8, "awsize": 3, "awburst": 2, "awprot": 3, "awcache": 4, "awvalid": 1}
WRITE |= {"awready": 1, "wdata": 512, "wstrb": 64, "wlast": 1, "wvalid": 1, "wready": 1}
WRITE |= {"bid": 2, "bresp": 2, "bvalid": 1, "bready": 1}
SUBORDINATE = {"arready", "rid", "rdata", "rresp", "rlast", "rvalid", "awready", "wready", "bid", "bresp", "bvalid"}


@pytest.mark.parametrize(
    ("signature", "widths"), [(Axi4ReadSignature, READ), (Axi4WriteSignature, WRITE), (Axi4Signature, READ | WRITE)]
)
def test_members(signature, widths):
    port = signature(48, 512, 2).create()
    assert port.signature.members.keys() == widths.keys()
    for name, width in widths.items():
        signal = getattr(port, name)
        assert len(getattr(signal, "as_value", lambda signal=signal: signal)()) == width, name
    driven = {name for name, member in port.signature.members.items() if member.flow == Out}
    assert driven == widths.keys() - SUBORDINATE


def test_equality_and_repr():
    assert Axi4ReadSignature(32, 128, 1) == Axi4ReadSignature(32, 128, 1)
    assert Axi4ReadSignature(32, 128, 1) != Axi4ReadSignature(32, 128, 2)
    assert Axi4ReadSignature(32, 128, 1) != Axi4WriteSignature(32, 128, 1)
    assert repr(Axi4ReadSignature(32, 128, 1)) == "Axi4ReadSignature(32, 128, 1)"
    assert repr(Axi4Signature(32, 128, 1)) == "Axi4Signature(32, 128, 1)"


@pytest.mark.parametrize("signature", [Axi4ReadSignature, Axi4WriteSignature, Axi4Signature])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((11, 128, 1), r"^addr_width must be an int from 12 to 64, not 11$"),
        ((32, 96, 1), r"^data_width must be 32, 64, 128, 256, 512 or 1024, not 96$"),
        ((32, 128, 0), r"^id_width must be an int of at least 1, not 0$"),
    ],
)
def test_refused_parameters(signature, arguments, message):
    with pytest.raises(ValueError, match=message):
        signature(*arguments)


def test_forwarded_channels_must_fit():
    axi, port = Axi4Signature(12, 32, 2).create(), Axi4ReadSignature(12, 32, 1).create()
    message = r"^Axi4ReadSignature\(12, 32, 1\) does not fit Axi4Signature\(12, 32, 2\): arid differs$"
    with pytest.raises(TypeError, match=message):
        forward_channels(Module(), axi, port)


def test_rready_while_idle():
    """RREADY does not depend on RID while RVALID is low: before the first beat RID is X."""
    dut = Axi4ReadMux(12, 128)

    async def testbench(ctx):
        ctx.set(dut.movers.rready, 1)
        assert {ctx.set(dut.axi.rid, rid) or ctx.get(dut.axi.rready) for rid in range(4)} == {0}

    simulate(dut, testbench)
