"""Setup: rules of each kind of command, and its jobs."""
