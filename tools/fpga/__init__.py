"""What the tops are on an FPGA: mapped by Yosys, placed and routed by nextpnr."""
