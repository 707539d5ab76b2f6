"""Operands from shared memory: what is read, where it goes, what is ready."""
