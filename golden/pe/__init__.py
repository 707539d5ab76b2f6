"""The golden model of the processing engine, and programs for it."""
