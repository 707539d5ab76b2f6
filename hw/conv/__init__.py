"""The convolution engine."""
