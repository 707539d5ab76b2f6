"""Verification: random cases, comparison with golden, coverage, proofs, models for the Python simulator."""
