"""Walks: from a job to runs of bytes, and their requests."""
