"""Synthesizable hardware, and nothing else."""
