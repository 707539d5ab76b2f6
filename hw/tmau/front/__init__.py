"""The front: from commands to jobs, in order, and back to completions."""
