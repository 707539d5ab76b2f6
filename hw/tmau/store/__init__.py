"""The store path: from lines of shared memory to bus words."""
