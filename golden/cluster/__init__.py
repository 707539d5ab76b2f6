"""Several cores with one global memory (docs/cluster.md)."""
