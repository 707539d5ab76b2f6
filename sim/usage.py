"""What a user of the command line did wrong."""

__all__ = ["UsageError"]


class UsageError(Exception):
    """A mistake in arguments or input files: the command line prints its one sentence and ends with status 2."""
