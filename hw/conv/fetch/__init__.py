"""What the convolution engine reads: places of points, pieces of shared memory, rows of the first buffer."""
