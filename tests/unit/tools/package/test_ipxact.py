"""Bus interfaces of a top, by hand; the schema and all names of ports are in ``tests/integration/test_package.py``."""

from tilewright.sim.hdl.tops import top_component
from tilewright.tools.package.ipxact import buses_of


def test_buses_by_hand():
    """Streams inside a bundle too, with the direction that they have there."""
    buses = {bus.name: bus for bus in buses_of(top_component("pe", "unit"))}
    assert buses["clk"].definition == ("xilinx.com", "signal", "clock", "1.0")
    assert buses["clk"].parameters == {
        "ASSOCIATED_BUSIF": "instructions:segments:pages:s_axil:smem_reads:smem_read_data:smem_scatter:smem_barriers:"
        "smem_barrier_results:page_moves",
        "ASSOCIATED_RESET": "rst",
    }
    assert buses["rst"].ports == {"rst": "RST"}
    assert buses["irq"].is_master and buses["irq"].ports == {"irq": "INTERRUPT"}
    reads, data = buses["smem_reads"], buses["smem_read_data"]
    assert reads.ports == {
        "smem_reads_payload": "TDATA", "smem_reads_valid": "TVALID", "smem_reads_ready": "TREADY",
    }  # fmt: skip
    assert (reads.is_master, data.is_master, buses["instructions"].is_master) == (True, False, False)
    assert buses["s_axil"].definition == ("amba.com", "AMBA4", "AXI4-Lite", "r0p0_0")
    assert buses["s_axil"].ports["s_axil_wstrb"] == "WSTRB"
