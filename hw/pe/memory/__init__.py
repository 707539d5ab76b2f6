"""The memory path: reads of shared memory, what they return, and stores."""
