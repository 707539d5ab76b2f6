"""Amaranth's simulator in Python, in less time: what a design is compiled to, and what runs it."""
