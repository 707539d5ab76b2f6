"""Several cores around one global memory (docs/cluster.md)."""
