"""The files for an integrator: Verilog, and the files that other tools read."""
