"""The array of the convolution engine: slaves with their memories, multipliers and accumulators."""
