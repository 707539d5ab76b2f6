"""What the processing engine means: instructions, threads and numbers."""
