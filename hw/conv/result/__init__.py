"""What becomes of sums: they are read out, get what belongs to them, and go to shared memory as runs of bytes."""
