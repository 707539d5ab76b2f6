"""Operands of the convolution engine: places of points, gathering from shared memory, and the first buffer."""
