"""Parts that have nothing to do with tensors: streams, loops, arbiters, tags."""
