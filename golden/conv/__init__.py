"""The golden model of the convolution engine, and plans of its jobs."""
