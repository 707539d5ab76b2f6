"""Names of ports behind a wrapper, the tables of payloads, and the comparison of bytes."""

from types import SimpleNamespace

import numpy as np
import pytest

from tilewright.hw.pe.layouts import FaultLayout, PageWriteLayout, SegmentWriteLayout
from tilewright.hw.pe.pager import MoveDoneLayout
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.hw.smem import layouts
from tilewright.tb import payloads
from tilewright.tb.common import Ports, check_bytes


def test_names_of_ports():
    dut = SimpleNamespace(aclk=1, aresetn=2, ddr_arvalid=3, m_axi_special=4, done_tag=5)
    ports = Ports(dut, "clk=aclk rst=!aresetn m_axi=ddr m_axi_rid=m_axi_special")
    assert [ports[name] for name in ("clk", "rst", "m_axi_arvalid", "m_axi_rid", "done_tag")] == [1, 2, 3, 4, 5]
    assert ports.name("m_axi") == "ddr"
    assert ports.reset_level == 0
    assert Ports(dut, "").reset_level == Ports(dut, "rst=reset").reset_level == 1


def test_names_of_ports_come_from_the_environment(monkeypatch):
    assert Ports(None).name("clk") == "clk"
    monkeypatch.setenv("TILEWRIGHT_PORTS", "clk=clock")
    assert Ports(None).name("clk") == "clock"


@pytest.mark.parametrize("preset", PE_PRESETS)
def test_payloads_are_those_of_the_hardware(preset):
    """Two statements of every payload agree, field by field."""
    params = PE_PRESETS[preset]
    smem, width = params.smem, params.smem.addr_width
    pairs = [
        (payloads.read(width), layouts.ReadLayout(smem)),
        (payloads.scatter(width), layouts.ScatterWriteLayout(smem)),
        (payloads.barrier_request(width), layouts.BarrierRequestLayout(smem)),
        (payloads.barrier_request(width, 2), layouts.BarrierRequestLayout(smem, 2)),
        (payloads.BARRIER_RESULT, layouts.BarrierResultLayout()),
        (payloads.line(width), layouts.LineLayout(smem)),
        (payloads.landed(width), layouts.LandedLayout(smem)),
        (payloads.indexed_word(SegmentWriteLayout(params).size, 256), SegmentWriteLayout(params)),
        (payloads.indexed_word(PageWriteLayout(params).size, 64), PageWriteLayout(params)),
        (payloads.fault(FaultLayout(params).size), FaultLayout(params)),
        (payloads.PAGE_MOVED, MoveDoneLayout()),
    ]
    for fmt, layout in pairs:
        assert fmt.bits == layout.size
        assert [(field.name, field.lsb) for field in fmt.fields] == [(name, field.offset) for name, field in layout]


def test_bytes_that_differ():
    check_bytes("memory", np.arange(4), np.arange(4))
    with pytest.raises(AssertionError, match=r"^2 bytes of memory differ, the first at 0x1: 0x09, not 0x01$"):
        check_bytes("memory", np.array([0, 9, 2, 9]), np.arange(4))
