"""What ``tilewright`` does beside running programs: Verilog, area, FPGAs, documentation, the command line."""
