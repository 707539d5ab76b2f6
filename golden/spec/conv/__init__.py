"""Jobs, errors, registers and parameters of the convolution engine."""
