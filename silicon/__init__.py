"""Replay on a Hopper GPU: its own tensor mover runs the cases that the golden model runs."""
