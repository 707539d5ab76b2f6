"""The text of instructions of the processing engine."""
