"""Unit tests in Amaranth's Python simulator."""
