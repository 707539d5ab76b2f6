"""Replay of cases from files on the golden model or the RTL."""
