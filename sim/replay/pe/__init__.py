"""Replay cases of the processing engine."""
