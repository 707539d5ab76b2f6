"""From Amaranth to Verilog, to a simulation that runs."""
