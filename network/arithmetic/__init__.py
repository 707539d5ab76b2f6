"""Exact arithmetic of quantised networks, in numpy: docs/network.md, "Exact arithmetic"."""
