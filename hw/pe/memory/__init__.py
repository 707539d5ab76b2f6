"""The memory side: reads of shared memory, what they return, and stores."""
