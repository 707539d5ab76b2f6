"""AXI4 subordinates of our own, which do all that the specification allows."""
