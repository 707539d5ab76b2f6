"""Measurements of speed in exact cycles, compared with limits."""
