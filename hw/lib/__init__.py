"""Parts that know nothing of tensors: streams, loops, arbiters, tags."""
