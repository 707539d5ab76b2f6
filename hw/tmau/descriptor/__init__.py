"""Descriptors: cache, check, and constants derived once."""
