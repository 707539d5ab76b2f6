"""The golden model of the tensor memory access unit: descriptors, tiles, transfers, commands."""
