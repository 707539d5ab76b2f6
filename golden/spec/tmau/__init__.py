"""Descriptors, commands, errors and registers of the tensor memory access unit."""
