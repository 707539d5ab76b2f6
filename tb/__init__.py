"""Modules that run inside the Verilog simulator."""
