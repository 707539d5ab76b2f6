"""Failures that are no bug and no difference: the command line prints their one sentence and ends with status 2."""

__all__ = ["HostError", "UsageError"]


class UsageError(Exception):
    """A mistake in arguments or input files."""


class HostError(UsageError, RuntimeError):
    """The machine lacks a tool, or a place that takes what is built."""
