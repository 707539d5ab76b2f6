"""What an integrator takes away: Verilog, and beside it what other tools read."""
