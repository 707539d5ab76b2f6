"""The convolution engine: what becomes of its sums. The rest of it is not built."""
