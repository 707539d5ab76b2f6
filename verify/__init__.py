"""Verification: random cases, comparison with golden, coverage, proofs, mutants, models for the Python simulator."""
