"""What shared memory means: barriers."""
