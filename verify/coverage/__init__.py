"""Functional coverage: which combinations of features a set of commands has shown."""
