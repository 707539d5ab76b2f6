"""The text of jobs of the convolution engine."""
