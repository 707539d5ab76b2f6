"""Jobs of the convolution engine: check, set-up, and the order in which they run."""
