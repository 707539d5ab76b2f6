"""Addresses: from memory instructions to accesses of eight lanes in shared memory."""
