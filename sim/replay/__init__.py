"""Replay cases: read, run on golden model or RTL, compared."""
