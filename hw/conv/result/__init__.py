"""Results of the convolution engine: read-out, post-processing, and writes to shared memory."""
